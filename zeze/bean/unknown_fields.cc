#include "zeze/bean/unknown_fields.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/bean/internal/slot.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

UnknownFields::Walk::Walk(const UnknownFields* fields)
    : in_(fields == nullptr ? std::string_view() : fields->bytes()) {
  Next();
}

void UnknownFields::Walk::Next() {
  has_entry_ = in_.remaining() > 0;
  if (!has_entry_) return;
  entry_.id = static_cast<int>(in_.ReadUint());
  entry_.type = static_cast<TypeCode>(in_.ReadByte());
  entry_.payload = in_.ReadBytes();
}

UnknownFields::UnknownFields(const UnknownFields& other) noexcept : box_(other.box_) {
  if (box_ != nullptr) internal::AddRef(box_->refs);
}

std::size_t UnknownFields::count() const {
  std::size_t count = 0;
  for (Walk walk(this); walk.has_entry(); walk.Next()) ++count;
  return count;
}

void UnknownFields::Clear() {
  internal::Box<std::string>* box = std::exchange(box_, nullptr);
  if (box != nullptr && internal::DropRef(box->refs)) delete box;
}

void UnknownFields::Append(int id, TypeCode type, std::string_view payload) {
  if (box_ == nullptr) {
    box_ = new internal::Box<std::string>(std::string());
  } else if (!internal::IsUnique(box_->refs)) {
    auto* copy = new internal::Box<std::string>(std::as_const(box_->value));
    Clear();
    box_ = copy;
  }
  ByteWriter head;
  head.WriteUint(static_cast<std::uint32_t>(id));
  head.WriteByte(static_cast<std::uint8_t>(type));
  head.WriteUint(static_cast<std::uint32_t>(payload.size()));
  box_->value.append(head.view());
  box_->value.append(payload);
}

}  // namespace zeze
