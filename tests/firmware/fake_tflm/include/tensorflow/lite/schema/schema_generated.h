// A fake: of the schema's classes, what the firmware reads. See README.md.
#pragma once
#include <cstdint>
#include <cstring>

namespace fake {

inline uint32_t u32(const uint8_t* at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

// The field of a flatbuffer table, or null: a vtable lies before the table, two bytes per field behind its header.
inline const uint8_t* field(const uint8_t* table, int number) {
  const uint8_t* vtable = table - static_cast<int32_t>(u32(table));
  uint16_t size, offset;
  memcpy(&size, vtable, 2);
  if (4 + 2 * number >= size) return nullptr;
  memcpy(&offset, vtable + 4 + 2 * number, 2);
  return offset == 0 ? nullptr : table + offset;
}
inline const uint8_t* follow(const uint8_t* at) { return at == nullptr ? nullptr : at + u32(at); }
inline uint32_t length(const uint8_t* vector) { return vector == nullptr ? 0 : u32(vector); }
inline const uint8_t* element(const uint8_t* vector, uint32_t index) { return follow(vector + 4 + 4 * index); }

// An object stands for the bytes where its table or vector begins.
inline const uint8_t* bytes(const void* object) { return static_cast<const uint8_t*>(object); }
template <typename Class>
const Class* at(const uint8_t* where) {
  return reinterpret_cast<const Class*>(where);
}

}  // namespace fake

namespace tflite {

struct Int32Vector {
  uint32_t size() const { return fake::u32(fake::bytes(this)); }
  const int32_t* begin() const { return reinterpret_cast<const int32_t*>(fake::bytes(this) + 4); }
  const int32_t* end() const { return begin() + size(); }
};
template <typename Class>
struct TableVector {
  struct Iterator {
    const uint8_t* where;
    Iterator operator+(uint32_t count) const { return {where + 4 * count}; }
    const Class* operator*() const { return fake::at<Class>(fake::follow(where)); }
  };
  Iterator begin() const { return {fake::bytes(this) + 4}; }
};
struct Operator {
  const Int32Vector* outputs() const { return fake::at<Int32Vector>(fake::follow(fake::field(fake::bytes(this), 2))); }
};
struct SubGraph {
  const TableVector<Operator>* operators() const {
    return fake::at<TableVector<Operator>>(fake::follow(fake::field(fake::bytes(this), 3)));
  }
};
struct Model {
  const TableVector<SubGraph>* subgraphs() const {
    return fake::at<TableVector<SubGraph>>(fake::follow(fake::field(fake::follow(fake::bytes(this)), 2)));
  }
};
inline const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }

}  // namespace tflite
