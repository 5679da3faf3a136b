// Address: table of texts that are addresses and of texts that are none; goal: nothing but the
// loopback passes as such.
#include "router/server/address.h"

#include <gtest/gtest.h>

namespace kvasir::server {
namespace {

TEST(Address, ReadsHostAndPortAndFormatsThemBack) {
  for (const char* text :
       {"127.0.0.1:7437", "localhost:0", "[::1]:65535", "0.0.0.0:1", "[::]:80"}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << text << " " << address.status();
    EXPECT_EQ(Format(*address), text);
  }
}

TEST(Address, WithoutHostMeansTheLoopback) {
  EXPECT_EQ(*ParseAddress(":9464"), (Address{"127.0.0.1", 9464}));
}

TEST(Address, RefusesWhatIsNoHostAndPort) {
  for (const char* text : {"", "7437", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1",
                           "127.0.0.1:65536", "127.0.0.1:99999999999", "::1:80", "a b:1", "h:1 "}) {
    EXPECT_FALSE(ParseAddress(text).ok()) << text;
  }
}

TEST(Address, OnlyTheLoopbackIsLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseAddress(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "128.0.0.1:1", "example.org:1",
                           "127.0.0.1.example.org:1", "localhost.example.org:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseAddress(text))) << text;
  }
}

}  // namespace
}  // namespace kvasir::server
