// Status mapping, decoded by hand: the wire bytes of google.rpc.Status are written out in the test,
// because a client of another language reads bytes, not our classes.
#include "router/server/status_to_grpc.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "router/server/invalid_field.h"
#include "router/server/utf8.h"

namespace kvasir::server {
namespace {

// A length-delimited field: tag byte, length (below 128), bytes. Source: protobuf encoding guide.
std::string Field(int number, const std::string& bytes) {
  EXPECT_LT(bytes.size(), 128u);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string Any(const std::string& type, const std::string& value) {
  return Field(1, "type.googleapis.com/google.rpc." + type) + Field(2, value);
}

// As Field, for lengths from 128 to 16383.
std::string LongField(int number, const std::string& bytes) {
  const size_t size = bytes.size();
  if (size < 128) return Field(number, bytes);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>((size & 127) | 128),
                     static_cast<char>(size >> 7)} +
         bytes;
}

TEST(StatusToGrpc, AnInvalidFieldHasErrorInfoAndBadRequestOnTheWire) {
  const grpc::Status status = ToGrpc(InvalidField("top_k", "{} is outside 0 to 9", -1));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "top_k: -1 is outside 0 to 9");
  const std::string message = "top_k: -1 is outside 0 to 9";
  const std::string info = Field(1, "INVALID_FIELD") + Field(2, "kvasir");
  const std::string violation = Field(1, "top_k") + Field(2, message);
  const std::string expected = std::string("\x08\x03", 2) + Field(2, message) +
                               LongField(3, Any("ErrorInfo", info)) +
                               LongField(3, Any("BadRequest", Field(1, violation)));
  EXPECT_EQ(status.error_details(), expected);
}

TEST(StatusToGrpc, AFullQueueSaysWhenToTryAgain) {
  const grpc::Status status =
      ToGrpc(base::WithReason(base::ResourceExhausted("256 turns wait"), "QUEUE_FULL"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const std::string info = Field(1, "QUEUE_FULL") + Field(2, "kvasir");
  const std::string expected = std::string("\x08\x08", 2) + Field(2, "256 turns wait") +
                               Field(3, Any("ErrorInfo", info)) +
                               Field(3, Any("RetryInfo", Field(1, std::string("\x08\x01", 2))));
  EXPECT_EQ(status.error_details(), expected);
}

TEST(StatusToGrpc, APreconditionNamesItsKindAndAQuotaItsText) {
  auto rpc = ToRpcStatus(base::WithReason(base::FailedPrecondition("closed"), "SESSION_CLOSED"));
  google::rpc::PreconditionFailure precondition;
  ASSERT_EQ(rpc.details_size(), 2);
  ASSERT_TRUE(rpc.details(1).UnpackTo(&precondition));
  EXPECT_EQ(precondition.violations(0).type(), "SESSION_CLOSED");
  rpc = ToRpcStatus(base::ResourceExhausted("300 of 256"));
  google::rpc::QuotaFailure quota;
  ASSERT_TRUE(rpc.details(1).UnpackTo(&quota));
  EXPECT_EQ(quota.violations(0).description(), "300 of 256");
}

TEST(StatusToGrpc, TheReasonDecidesTheCode) {
  const auto status = base::WithReason(base::Internal("other turn runs"), "SESSION_BUSY");
  EXPECT_EQ(ToGrpc(status).error_code(), grpc::StatusCode::ABORTED);
}

TEST(StatusToGrpc, WithoutAKnownReasonTheCodeNamesOne) {
  for (const auto& status : {base::NotFound("x"), base::WithReason(base::NotFound("x"), "ODD")}) {
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(ToRpcStatus(status).details(0).UnpackTo(&info));
    EXPECT_EQ(info.reason(), "RESOURCE_NOT_FOUND");
  }
  EXPECT_EQ(ToGrpc(base::Status(absl::StatusCode::kUnknown, "x")).error_code(),
            grpc::StatusCode::INTERNAL);
}

TEST(StatusToGrpc, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpc(base::OkStatus()).ok());
  EXPECT_EQ(ToGrpc(base::OkStatus()).error_details(), "");
}

TEST(StatusToGrpc, ALongOrBrokenMessageBecomesShortValidUtf8) {
  const std::string bytes = "\xff\xe4" + std::string(5000, 'x') + "ö";
  const grpc::Status status = ToGrpc(InvalidField(bytes, "{}", bytes));
  EXPECT_LE(status.error_message().size(), static_cast<size_t>(kMessageBytesMax));
  EXPECT_EQ(ValidUtf8Prefix(status.error_message()), status.error_message().size());
  EXPECT_LT(status.error_details().size(), 4096u);
}

TEST(Utf8, FollowsTheTableOfRfc3629) {
  for (const char* good :
       {"", "a", "ö", "€", "😀", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_EQ(ValidUtf8Prefix(good), std::string(good).size()) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xff"}) {
    EXPECT_EQ(ValidUtf8Prefix(bad), 0u);
    EXPECT_EQ(ValidUtf8Prefix("ab" + std::string(bad) + "c"), 2u);
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(CutUtf8("aö", 2), "a");
  EXPECT_EQ(CutUtf8("aö", 3), "aö");
  EXPECT_EQ(CutUtf8("😀", 3), "");
}

}  // namespace
}  // namespace kvasir::server
