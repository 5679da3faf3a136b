// Status helpers: payloads survive what the layers do to a status; the macros return early, once.
#include "engine/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace kvasir::base {
namespace {

TEST(Status, MakersFormatAndSetTheCode) {
  const Status status = InvalidArgument("{} tokens, the context holds {}", 9, 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStd(status.message()), "9 tokens, the context holds 8");
  EXPECT_EQ(DataLoss("x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unavailable("x").code(), absl::StatusCode::kUnavailable);
}

TEST(Status, ReasonAndFieldAreKeptApart) {
  const Status status = WithField(WithReason(NotFound("no"), "MODEL_MISMATCH"), "model.id");
  EXPECT_EQ(Reason(status), "MODEL_MISMATCH");
  EXPECT_EQ(Field(status), "model.id");
  EXPECT_EQ(Reason(WithField(NotFound("no"), "f")), "");
  EXPECT_EQ(Field(WithReason(NotFound("no"), "R")), "");
}

TEST(Status, TheLastReasonReplacesEarlierOnes) {
  EXPECT_EQ(Reason(WithReason(WithReason(Aborted("x"), "A"), "B")), "B");
}

TEST(Status, OkTakesNoPayloadAndNoAnnotation) {
  EXPECT_TRUE(WithReason(OkStatus(), "R").ok());
  EXPECT_EQ(Reason(WithReason(OkStatus(), "R")), "");
  EXPECT_EQ(Field(WithField(OkStatus(), "f")), "");
  EXPECT_TRUE(Annotate(OkStatus(), "context").ok());
}

TEST(Status, AnnotateKeepsCodeReasonAndField) {
  const Status inner = WithField(WithReason(OutOfRange("{}", 7), "TOO_FAR"), "page_size");
  const Status outer = Annotate(inner, "listing sessions");
  EXPECT_EQ(outer.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ToStd(outer.message()), "listing sessions: 7");
  EXPECT_EQ(Reason(outer), "TOO_FAR");
  EXPECT_EQ(Field(outer), "page_size");
}

TEST(Status, PayloadsMayHoldAnyBytes) {
  const std::string bytes("a\0\xff", 3);
  EXPECT_EQ(Field(WithField(NotFound("no"), bytes)), bytes);
}

StatusOr<int> Once(int& calls, bool ok) {
  ++calls;
  if (!ok) return FailedPrecondition("call {}", calls);
  return calls;
}

Status UseReturnIfError(int& calls, bool ok) {
  KVASIR_RETURN_IF_ERROR(Once(calls, ok).status());
  return OkStatus();
}

StatusOr<int> UseAssignOrReturn(int& calls, bool ok) {
  KVASIR_ASSIGN_OR_RETURN(const int first, Once(calls, true));
  KVASIR_ASSIGN_OR_RETURN(const int second, Once(calls, ok));
  return first * 10 + second;
}

TEST(Status, ReturnIfErrorEvaluatesOnceAndReturnsTheError) {
  int calls = 0;
  EXPECT_TRUE(UseReturnIfError(calls, true).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ToStd(UseReturnIfError(calls, false).message()), "call 2");
  EXPECT_EQ(calls, 2);
}

TEST(Status, AssignOrReturnGivesTheValueOrTheError) {
  int calls = 0;
  EXPECT_EQ(*UseAssignOrReturn(calls, true), 12);
  calls = 0;
  EXPECT_EQ(ToStd(UseAssignOrReturn(calls, false).status().message()), "call 2");
}

TEST(Status, AssignOrReturnMovesWhatCannotBeCopied) {
  const auto make = []() -> StatusOr<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto use = [&]() -> StatusOr<int> {
    KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, make());
    return *value;
  };
  EXPECT_EQ(*use(), 5);
}

}  // namespace
}  // namespace kvasir::base
