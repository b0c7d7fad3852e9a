// Bodies of schema.h: types of C++ to types of the schema language.

#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/gtable.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/schema.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {

namespace internal {

using BeanSchemas = SortedMap<std::string, BeanSchema>;

template <BeanType B>
void AddBean(BeanSchemas& beans);

// The name of a type without parameters; adds the beans that it reaches. The choices of a dynamic
// go to `field`.
template <typename T>
std::string DescribeName(FieldSchema& field, BeanSchemas& beans);

template <typename T>
constexpr std::string_view SimpleTypeName() {
  if constexpr (std::same_as<T, bool>) return "bool";
  if constexpr (std::same_as<T, std::int8_t>) return "byte";
  if constexpr (std::same_as<T, std::int16_t>) return "short";
  if constexpr (std::same_as<T, std::int32_t>) return "int";
  if constexpr (std::same_as<T, std::int64_t>) return "long";
  if constexpr (std::same_as<T, float>) return "float";
  if constexpr (std::same_as<T, double>) return "double";
  if constexpr (std::same_as<T, std::string>) return "string";
  if constexpr (std::same_as<T, Binary>) return "binary";
  if constexpr (std::same_as<T, Decimal>) return "decimal";
  if constexpr (std::same_as<T, Vector2>) return "vector2";
  if constexpr (std::same_as<T, Vector3>) return "vector3";
  if constexpr (std::same_as<T, Vector4>) return "vector4";
  if constexpr (std::same_as<T, Quaternion>) return "quaternion";
  if constexpr (std::same_as<T, Vector2Int>) return "vector2int";
  if constexpr (std::same_as<T, Vector3Int>) return "vector3int";
  if constexpr (std::same_as<T, Id128>) return "id128";
  if constexpr (std::same_as<T, AnyBean>) return "dynamic";
  return "";
}

template <typename... Cases>
void DescribeChoices(FieldSchema& field, BeanSchemas& beans, TypeList<Cases...>*) {
  (field.choices.Put(Cases::kTypeId, std::string(Cases::Bean::kFullName)), ...);
  (AddBean<typename Cases::Bean>(beans), ...);
}

template <typename T>
std::string DescribeName(FieldSchema& field, BeanSchemas& beans) {
  if constexpr (!SimpleTypeName<T>().empty()) {
    return std::string(SimpleTypeName<T>());
  } else if constexpr (DynamicType<T>) {
    DescribeChoices(field, beans, static_cast<typename T::Choices::List*>(nullptr));
    return "dynamic";
  } else if constexpr (BeanType<T>) {
    AddBean<T>(beans);
    return std::string(T::kFullName);
  } else {
    // A hand-written class: only its name is known.
    return std::string(T::kFullName);
  }
}

template <typename T>
struct TypeDescriber {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = DescribeName<T>(field, beans);
  }
};

template <typename T>
struct TypeDescriber<List<T>> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "list";
    field.value = DescribeName<T>(field, beans);
  }
};

// A hand-written container that is stored as a list.
template <typename T>
  requires requires { typename T::StoredAsListOf; }
struct TypeDescriber<T> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "list";
    field.value = DescribeName<typename T::StoredAsListOf>(field, beans);
  }
};

template <typename T>
struct TypeDescriber<Set<T>> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "set";
    field.value = DescribeName<T>(field, beans);
  }
};

template <typename K, typename V>
struct TypeDescriber<Map<K, V>> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "map";
    field.key = DescribeName<K>(field, beans);
    field.value = DescribeName<V>(field, beans);
  }
};

template <typename K, typename V>
struct TypeDescriber<SortedMap<K, V>> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "sortedmap";
    field.key = DescribeName<K>(field, beans);
    field.value = DescribeName<V>(field, beans);
  }
};

template <typename R, typename C, typename V>
struct TypeDescriber<Map<R, GTableRow<C, V>>> {
  static void Describe(FieldSchema& field, BeanSchemas& beans) {
    field.type = "gtable";
    field.key = DescribeName<R>(field, beans) + "," + DescribeName<C>(field, beans);
    field.value = DescribeName<V>(field, beans);
  }
};

template <BeanType B>
void AddBean(BeanSchemas& beans) {
  const std::string name(B::kFullName);
  if (beans.Contains(name)) return;
  BeanSchema bean;
  bean.name = name;
  bean.is_key = BeanKeyType<B>;
  beans.Put(name, bean);  // Before its variables: beans may hold themselves.
  B::ForEachField([&](const Field& described, auto member) {
    FieldSchema field;
    field.id = described.id;
    field.name = described.name;
    field.transient = described.transient;
    TypeDescriber<typename MemberOf<decltype(member)>::ValueT>::Describe(field, beans);
    bean.fields.Put(described.id, field);
  });
  if constexpr (HasBaseBean<B>) {
    bean.base = B::Base::kFullName;
    AddBean<typename B::Base>(beans);
  }
  beans.Put(name, bean);
}

TableSchema MakeTable(const TableDescription& options);

}  // namespace internal

template <BeanType B>
Schema DescribeBean() {
  Schema schema;
  schema.type = B::kFullName;
  internal::AddBean<B>(schema.beans);
  return schema;
}

template <typename K, BeanType V>
TableSchema DescribeTable(const TableDescription& options) {
  TableSchema table = internal::MakeTable(options);
  FieldSchema unused;
  table.key_type = internal::DescribeName<K>(unused, table.beans);
  table.value_type = internal::DescribeName<V>(unused, table.beans);
  return table;
}

}  // namespace zeze
