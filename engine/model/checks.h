// The parts of Config::FromFile. Inner header of this module.
#pragma once

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/model/config.h"

namespace kvasir::model {

// Fills what only the tensors tell: n_vocab, tied_output, qkv_bias, rope_factors.
base::Status ReadTensorFacts(const gguf::File& file, Config& config);

// Every expected tensor is there with its shape and type, and no other.
base::Status CheckTensors(const gguf::File& file, const Config& config);

// Tokenizer model known; tokens, scores and types of n_vocab entries; ids of special tokens in
// range. Fills bos_id and eos_id.
base::Status ReadVocabularyFacts(const gguf::File& file, Config& config);

}  // namespace kvasir::model
