// JinjaForm: a chat template reduced to what it does, so that two spellings of one template compare
// equal. White space inside tags, the kind of quotes, m['x'] for m.x, adjacent string literals and
// the text of a default system message do not count; every statement, name and other literal does.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/status.h"

namespace kvasir::tokenizer {

struct JinjaForm {
  static constexpr size_t kTemplateBytesMax = size_t{1} << 20;

  base::Digest digest;
  // What stands between "<|im_start|>system\n" and "<|im_end|>\n" in a string literal, if anywhere.
  std::optional<std::string> default_system;
};

// The form of the template `jinja`, with trim_blocks and lstrip_blocks as chat templates are run.
// Errors: InvalidArgument (longer than kTemplateBytesMax, or a tag or string that does not end).
base::StatusOr<JinjaForm> FormOf(std::string_view jinja);

}  // namespace kvasir::tokenizer
