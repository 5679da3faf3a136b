#include "engine/model/segment_fit.h"

#include "engine/model/model.h"

namespace kvasir::model {

base::Status CheckFits(const Model& model, const kv::KvSegment& segment) {
  if (!(segment.geometry() == model.geometry())) {
    return base::InvalidArgument("the state's geometry is not the model's");
  }
  if (segment.info().element_type != model.element_type()) {
    return base::InvalidArgument("state of {}-byte elements, this backend reads {}-byte ones",
                                 kv::ElementBytes(segment.info().element_type),
                                 kv::ElementBytes(model.element_type()));
  }
  if (!segment.exact()) return base::InvalidArgument("the state is not exact");
  const int64_t first = segment.info().first_position;
  const int64_t positions = model.options().positions_max;
  if (first < 0 || first + segment.logical_tokens() > positions) {
    return base::InvalidArgument("state of positions {} to {}, the model has {}", first,
                                 first + segment.logical_tokens(), positions);
  }
  return base::OkStatus();
}

void MountHeads(const Model& model, const kv::KvSegment& segment, std::span<std::byte* const> pages,
                int64_t page_first, RawKeys raw) {
  const kernels::KvLayout& layout = model.layout();
  for (int layer = 0; layer < layout.layers(); ++layer) {
    for (int kv_head = 0; kv_head < layout.layer(layer).kv_heads; ++kv_head) {
      const kv::HeadSlots& head = segment.head(layer, kv_head);
      model.backend().Mount({.layout = &layout,
                             .layer = layer,
                             .kv_head = kv_head,
                             .rope = &model.rope(),
                             .pages = pages,
                             .page_first = page_first,
                             .first_local = segment.info().first_position,
                             .slots = head.slots,
                             .raw_keys = head.keys.data(),
                             .values = head.values.data(),
                             .keep_raw = raw == RawKeys::kKeep});
    }
  }
}

std::vector<kv::HeadSlots> ExtractHeads(const Model& model, std::span<std::byte* const> pages,
                                        int64_t page_first, int64_t begin, int64_t slots) {
  const kernels::KvLayout& layout = model.layout();
  const size_t element = static_cast<size_t>(kernels::KvBytes(layout.type()));
  std::vector<kv::HeadSlots> heads;
  for (int layer = 0; layer < layout.layers(); ++layer) {
    for (int kv_head = 0; kv_head < layout.layer(layer).kv_heads; ++kv_head) {
      kv::HeadSlots& head = heads.emplace_back();
      head.slots = static_cast<int32_t>(slots);
      head.keys.resize(static_cast<size_t>(slots) * layout.layer(layer).k_width * element);
      head.values.resize(static_cast<size_t>(slots) * layout.layer(layer).v_width * element);
      model.backend().Extract({.layout = &layout,
                               .layer = layer,
                               .kv_head = kv_head,
                               .pages = {pages.data(), pages.size()},
                               .page_first = page_first,
                               .first_local = begin,
                               .slots = slots,
                               .raw_keys = head.keys.data(),
                               .values = head.values.data()});
    }
  }
  return heads;
}

}  // namespace kvasir::model
