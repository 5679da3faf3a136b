// Resource names: round trips and a table of malformed texts; goal: one spelling per resource, no
// way round the rules.
#include "router/server/resource_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::server {
namespace {

using testing::HasSubstr;

const std::string kLongestId(kIdBytesMax, 'a');

TEST(ResourceNames, AreFormattedBackToTheSameText) {
  for (const std::string& text :
       {std::string("users/ann"), "users/" + kLongestId, std::string("users/0.B_c~d@e.org+f-g")}) {
    EXPECT_EQ(Format(*ParseUserName(text, "name")), text);
  }
  EXPECT_EQ(Format(*ParseSessionName("users/a/sessions/b", "name")), "users/a/sessions/b");
  EXPECT_EQ(Format(*ParseMemoryName("users/a/memories/b", "name")), "users/a/memories/b");
  EXPECT_EQ(*ParseTurnName("users/a/sessions/b/turns/1000000", "name"),
            (TurnName{"a", "b", 1'000'000}));
  EXPECT_EQ(Format(TurnName{"a", "b", 7}), "users/a/sessions/b/turns/7");
  EXPECT_EQ(*ParseOperationName(FormatOperation("x1"), "name"), "x1");
  EXPECT_EQ(*ParseErasureName(FormatErasure("x1"), "name"), "x1");
  EXPECT_EQ(*ParseModelName(FormatModel("qwen2.5-0.5b"), "name"), "qwen2.5-0.5b");
}

TEST(ResourceNames, RefuseWhatIsNoUser) {
  const std::string bad[] = {"",
                             "users",
                             "users/",
                             "user/ann",
                             "users/ann/",
                             "/users/ann",
                             "users/-",
                             "users/.",
                             "users/..",
                             "users/a/b",
                             "users/a b",
                             "users/a%2Fb",
                             "users/ann\n",
                             "users/ä",
                             "Users/ann",
                             "users/_a",
                             "users/a\0b",
                             "users/a\\b",
                             "users//a",
                             "users/*",
                             "users/ann/sessions/s",
                             "users/" + kLongestId + "a",
                             std::string("users/a\0", 8),
                             std::string(1 << 20, 'u')};
  for (const std::string& text : bad) {
    if (text == "users/a") continue;  // what the compiler makes of a literal with NUL
    const auto name = ParseUserName(text, "parent");
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::Reason(name.status()), "INVALID_FIELD");
    EXPECT_EQ(base::Field(name.status()), "parent");
    EXPECT_LT(name.status().message().size(), 400u);
  }
}

TEST(ResourceNames, RefuseNamesOfAnotherCollection) {
  EXPECT_FALSE(ParseSessionName("users/a/memories/b", "name").ok());
  EXPECT_FALSE(ParseSessionName("users/a/sessions/b/turns/1", "name").ok());
  EXPECT_FALSE(ParseSessionName("users//sessions/b", "name").ok());
  EXPECT_FALSE(ParseMemoryName("users/a/sessions/b", "name").ok());
  EXPECT_FALSE(ParseOperationName("erasures/a", "name").ok());
  EXPECT_FALSE(ParseErasureName("operations/a", "name").ok());
}

TEST(ResourceNames, TurnNumbersAreCanonicalAndBounded) {
  for (const char* number : {"0", "-1", "+1", "01", "1000001", "99999999999999999999", "1.0", "0x1",
                             "", " 1", "1 ", "one", "2147483648"}) {
    const auto name = ParseTurnName(fmt::format("users/a/sessions/b/turns/{}", number), "name");
    EXPECT_FALSE(name.ok()) << number;
  }
}

TEST(ResourceNames, TheMessageNamesFieldTextAndForm) {
  const auto status = ParseUserName("people/ann", "parent").status();
  EXPECT_EQ(base::ToStd(status.message()),
            "parent: 'people/ann' is no name of the form users/{user}");
  EXPECT_THAT(std::string(base::ToStd(ParseUserName("", "parent").status().message())),
              HasSubstr("is required"));
}

}  // namespace
}  // namespace kvasir::server
