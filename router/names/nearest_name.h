// NearestName: what someone probably meant who wrote a name that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvasir::names {

// The name with the fewest edits (insertions, deletions, substitutions of a byte) from `name`, the
// first of several; "" when that takes more than a third of its length, rounded up.
// O(names × length²). Source: Wagner and Fischer, "The string-to-string correction problem", 1974.
std::string NearestName(std::string_view name, std::span<const std::string_view> names);

}  // namespace kvasir::names
