// What libprotobuf says of malformed text; goal: nothing of a request reaches stderr.
#include "router/server/protobuf_log.h"

#include <gtest/gtest.h>

#include "kvasir/v1/chat.pb.h"

namespace kvasir::server {
namespace {

TEST(ProtobufLog, TextThatIsNoUtf8IsCountedAndNotPrinted) {
  v1::ChatRequest request;
  request.set_message("secret");
  std::string bytes = request.SerializeAsString();
  bytes.back() = '\xff';
  DropProtobufLog();
  const int64_t before = DroppedProtobufLines();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(request.ParseFromString(bytes));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(DroppedProtobufLines(), before + 3);
}

}  // namespace
}  // namespace kvasir::server
