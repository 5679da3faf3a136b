// Repacking: from the file's blocks of one row to panels of 16 output columns (layout.h).
#pragma once

#include <cstdint>

#include "engine/gguf/types.h"
#include "engine/kernels/cpu/linear/layout.h"

namespace kvasir::kernels::linear {

// A panel's place in the file and in memory.
struct PanelSource {
  gguf::TensorType type;
  const uint8_t* rows;  // first byte of the panel's first row; rows follow each other
  int64_t row_bytes;
  int columns;  // rows of the file in this panel, 1 … 16; the others become zeros
  int64_t k;
};

// Writes one panel. `format` is the format of `type`, or kF32 for any type (dequantized). `quants`
// and `scales` receive PanelQuantBytes and PanelScaleBytes.
void PackPanel(const PanelSource& source, Format format, uint8_t* quants, uint8_t* scales);

// The packed format of a file type.
Format FormatOf(gguf::TensorType type);

}  // namespace kvasir::kernels::linear
