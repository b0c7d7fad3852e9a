// CheckCompatible, MergeSchemas and CanBeUnreadable of schema.h.

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/schema.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/type_widening.h"

namespace zeze {

namespace {

// How many bits an integer has; 0 for other types.
int IntegerBits(std::string_view type) {
  if (type == "bool") return 1;
  if (type == "byte") return 8;
  if (type == "short") return 16;
  if (type == "int") return 32;
  if (type == "long") return 64;
  return 0;
}

// What the type of a value is used for decides how strictly it is compared.
enum class Use {
  kValue,     // Decoded with its type code: may widen (type_widening.h).
  kKey,       // The same, and a beankey keeps all its variables.
  kTableKey,  // Rows are found by these bytes: they must not change.
};

class TableCheck {
 public:
  TableCheck(const TableSchema& stored, const TableSchema& current,
             const CompatibilityOptions& options, std::vector<std::string>& problems)
      : stored_(stored), current_(current), options_(options), problems_(problems) {}

  void Run() {
    if (current_.version > stored_.version) return;
    if (current_.version < stored_.version) {
      problems_.push_back(fmt::format(
          "table {}: its version went back from {} to {}, but its rows were written "
          "under version {}. Start the newer program, or set the version to at least "
          "{}.",
          current_.name, stored_.version, current_.version, stored_.version, stored_.version));
      return;
    }
    if (!TypesFit(stored_.key_type, current_.key_type, Use::kTableKey)) {
      problems_.push_back(
          fmt::format("table {}: the type of its key changed from {} to {}, and stored rows would "
                      "not be found any more. {}",
                      current_.name, stored_.key_type, current_.key_type, TableKeyAdvice()));
    }
    if (!TypesFit(stored_.value_type, current_.value_type, Use::kValue)) {
      problems_.push_back(fmt::format(
          "table {}: the type of its value changed from {} to {}. Keep {}, or {}.", current_.name,
          stored_.value_type, current_.value_type, stored_.value_type, RaiseVersion()));
    }
  }

 private:
  // Compares two types and the beans that they name (whose problems are reported there); false when
  // the types themselves do not fit.
  bool TypesFit(const std::string& old_type, const std::string& new_type, Use use) {
    if (stored_.beans.Contains(old_type) && current_.beans.Contains(new_type)) {
      BeansFit(old_type, new_type, use);
      return true;
    }
    // A hand-written class does not say what is in it: its name stands for it.
    if (old_type == new_type) return true;
    if (use != Use::kTableKey) return CanWiden(old_type, new_type);
    if (IntegerBits(old_type) > 0) return IntegerBits(new_type) >= IntegerBits(old_type);
    return old_type == "string" && new_type == "binary";
  }

  void BeansFit(const std::string& old_name, const std::string& new_name, Use use) {
    const BeanSchema* old_bean = stored_.beans.Find(old_name);
    const BeanSchema* new_bean = current_.beans.Find(new_name);
    if (old_bean == nullptr || new_bean == nullptr) return;
    if (!compared_.insert({old_name, new_name, use}).second) return;
    for (const auto& [id, old_field] : old_bean->fields) {
      const FieldSchema* new_field = new_bean->fields.Find(id);
      if (new_field == nullptr || new_field->transient) {
        CheckRemoved(*new_bean, old_field, use);
      } else {
        CheckField(*new_bean, old_field, *new_field, use);
      }
    }
    BeansFit(old_bean->base, new_bean->base, use);
  }

  void CheckRemoved(const BeanSchema& bean, const FieldSchema& old_field, Use use) {
    if (use == Use::kValue || old_field.removed || old_field.transient) return;
    problems_.push_back(fmt::format(
        "table {}: beankey {} lost variable {} \"{}\" ({}), and keys that differ only in it would "
        "become one. Put the variable back, or {}.",
        current_.name, bean.name, old_field.id, old_field.name, old_field.TypeText(),
        RaiseVersion()));
  }

  void CheckField(const BeanSchema& bean, const FieldSchema& old_field,
                  const FieldSchema& new_field, Use use) {
    if (old_field.transient) return;  // No row has it.
    if (old_field.removed && options_.forbid_reuse_of_removed_ids) {
      problems_.push_back(fmt::format(
          "table {}: bean {}, variable {} \"{}\": this id belonged to the removed variable \"{}\" "
          "({}), and removed ids may not be used again here. Give the variable another id.",
          current_.name, bean.name, new_field.id, new_field.name, old_field.name,
          old_field.TypeText()));
      return;
    }
    const bool fit =
        TypesFit(old_field.type, new_field.type, use) && KeysFit(old_field, new_field) &&
        (old_field.value.empty() || TypesFit(old_field.value, new_field.value,
                                             old_field.type == "set" ? Use::kKey : Use::kValue));
    if (!fit) {
      problems_.push_back(TypeProblem(bean, old_field, new_field, use));
      return;
    }
    CheckChoices(bean, old_field, new_field);
  }

  // The keys of maps and gtables; a gtable has two, separated by a comma.
  bool KeysFit(const FieldSchema& old_field, const FieldSchema& new_field) {
    const std::size_t old_comma = old_field.key.find(',');
    const std::size_t new_comma = new_field.key.find(',');
    if ((old_comma == std::string::npos) != (new_comma == std::string::npos)) return false;
    if (old_field.key.empty() || new_field.key.empty()) return old_field.key == new_field.key;
    if (old_comma == std::string::npos) return TypesFit(old_field.key, new_field.key, Use::kKey);
    return TypesFit(old_field.key.substr(0, old_comma), new_field.key.substr(0, new_comma),
                    Use::kKey) &&
           TypesFit(old_field.key.substr(old_comma + 1), new_field.key.substr(new_comma + 1),
                    Use::kKey);
  }

  std::string TypeProblem(const BeanSchema& bean, const FieldSchema& old_field,
                          const FieldSchema& new_field, Use use) const {
    const std::string what =
        old_field.removed
            ? fmt::format(
                  "its id belonged to the removed variable \"{}\" of type {}, which rows "
                  "may still have, and {} cannot hold every value of it",
                  old_field.name, old_field.TypeText(), new_field.TypeText())
            : fmt::format("its type changed from {} to {}, which cannot hold every stored value",
                          old_field.TypeText(), new_field.TypeText());
    const std::string advice =
        use == Use::kTableKey ? TableKeyAdvice()
        : old_field.removed
            ? fmt::format("Give the variable an id that was never used, or {}.", RaiseVersion())
            : fmt::format(
                  "Keep {}, or add a variable with a new id instead and convert the values in your "
                  "program, or {}.{}",
                  old_field.TypeText(), RaiseVersion(), WideningAdvice(old_field, new_field));
    return fmt::format("table {}: bean {}, variable {} \"{}\": {}. {}", current_.name, bean.name,
                       new_field.id, new_field.name, what, advice);
  }

  void CheckChoices(const BeanSchema& bean, const FieldSchema& old_field,
                    const FieldSchema& new_field) {
    // A dynamic without choices holds any bean.
    if (old_field.choices.empty() && !new_field.choices.empty()) {
      problems_.push_back(fmt::format(
          "table {}: bean {}, variable {} \"{}\": the dynamic held any bean and is limited to {} "
          "choices now, and rows that hold another bean could not be read. Remove the choices, or "
          "{}.",
          current_.name, bean.name, new_field.id, new_field.name, new_field.choices.size(),
          RaiseVersion()));
    }
    for (const auto& [type_id, old_bean] : old_field.choices) {
      const std::string* new_bean = new_field.choices.Find(type_id);
      if (new_bean == nullptr) {
        problems_.push_back(fmt::format(
            "table {}: bean {}, variable {} \"{}\": the dynamic lost its choice {} ({}), and rows "
            "that hold one could not be read. Put the choice back, or {}.",
            current_.name, bean.name, new_field.id, new_field.name, type_id, old_bean,
            RaiseVersion()));
      } else if (*new_bean != old_bean) {
        problems_.push_back(fmt::format(
            "table {}: bean {}, variable {} \"{}\": choice {} of the dynamic changed from {} to "
            "{}. Give {} a type id of its own and keep {}, or {}.",
            current_.name, bean.name, new_field.id, new_field.name, type_id, old_bean, *new_bean,
            *new_bean, old_bean, RaiseVersion()));
      } else {
        BeansFit(old_bean, *new_bean, Use::kValue);
      }
    }
  }

  // Which types the part of the variable that does not fit may become.
  std::string WideningAdvice(const FieldSchema& old_field, const FieldSchema& new_field) const {
    const auto advice = [](std::string_view from, std::string_view to) -> std::string {
      const std::string types = WiderTypes(from);
      if (CanWiden(from, to) || types == from) return "";
      return fmt::format(" A stored {} may be read as: {}.", from, types);
    };
    return advice(old_field.type, new_field.type) + advice(old_field.key, new_field.key) +
           advice(old_field.value, new_field.value);
  }

  std::string RaiseVersion() const {
    return fmt::format(
        "raise the version of the table to {} (its stored rows are then set aside and it starts "
        "empty)",
        stored_.version + 1);
  }

  std::string TableKeyAdvice() const {
    return fmt::format(
        "In a table key integers may only become wider, and string may become binary. "
        "Keep the old type, or {}.",
        RaiseVersion());
  }

  const TableSchema& stored_;
  const TableSchema& current_;
  const CompatibilityOptions& options_;
  std::vector<std::string>& problems_;
  std::set<std::tuple<std::string, std::string, Use>> compared_;  // Beans may hold themselves.
};

bool IsStored(const TableSchema& table) {
  return !table.memory && !table.no_schema;
}

// Carries over to the beans of a table what only its stored schema knows: removed variables, and
// beans that they are made of. Walks both schemas side by side, so that a renamed bean is followed.
class TableMerge {
 public:
  TableMerge(const TableSchema& stored, TableSchema& merged) : stored_(stored), merged_(merged) {}

  void Run() {
    Types(stored_.key_type, merged_.key_type);
    Types(stored_.value_type, merged_.value_type);
    for (const auto& [name, bean] : stored_.beans) {
      if (!merged_.beans.Contains(name)) merged_.beans.Put(name, bean);
    }
  }

 private:
  void Types(const std::string& old_type, const std::string& new_type) {
    const BeanSchema* old_bean = stored_.beans.Find(old_type);
    const BeanSchema* found = merged_.beans.Find(new_type);
    if (old_bean == nullptr || found == nullptr) return;
    if (!done_.insert({old_type, new_type}).second) return;
    BeanSchema bean = *found;
    for (const auto& [id, old_field] : old_bean->fields) {
      const FieldSchema* field = bean.fields.Find(id);
      if (field != nullptr && !field->transient) {
        Fields(old_field, *field);
      } else if (!old_field.transient) {
        FieldSchema removed = old_field;
        removed.removed = true;
        bean.fields.Put(id, removed);
      }
    }
    if (bean.base.empty()) bean.base = old_bean->base;  // Rows may still have its variables.
    Types(old_bean->base, bean.base);
    // The walk below this bean may have come back to it: keep what was added to it meanwhile.
    merged_.beans.Update(new_type, [&](BeanSchema& merged) {
      merged.base = bean.base;
      for (const auto& [id, field] : bean.fields) merged.fields.Put(id, field);
    });
  }

  void Fields(const FieldSchema& old_field, const FieldSchema& field) {
    Types(old_field.type, field.type);
    Types(old_field.value, field.value);
    const std::size_t old_comma = old_field.key.find(',');
    const std::size_t comma = field.key.find(',');
    Types(old_field.key.substr(0, old_comma), field.key.substr(0, comma));
    if (old_comma != std::string::npos && comma != std::string::npos) {
      Types(old_field.key.substr(old_comma + 1), field.key.substr(comma + 1));
    }
    for (const auto& [type_id, old_bean] : old_field.choices) {
      if (const std::string* bean = field.choices.Find(type_id)) Types(old_bean, *bean);
    }
  }

  const TableSchema& stored_;
  TableSchema& merged_;
  std::set<std::pair<std::string, std::string>> done_;
};

// Follows the beans of a table as they may be nested.
class ReadabilityCheck {
 public:
  explicit ReadabilityCheck(const TableSchema& table) : table_(table) {}

  bool MayFail(const std::string& type, int depth) {
    if (type == "decimal" || depth > kBeanDepthMax) return true;
    const BeanSchema* bean = table_.beans.Find(type);
    if (bean == nullptr) return false;
    if (const auto seen = readable_at_.find(type);
        seen != readable_at_.end() && depth <= seen->second) {
      return false;
    }
    if (!open_.insert(type).second) return true;  // It holds itself.
    bool may_fail = MayFail(bean->base, depth + 1);
    for (const auto& [id, field] : bean->fields) {
      if (!field.transient) may_fail = may_fail || FieldMayFail(field, depth + 1);
    }
    open_.erase(type);
    if (!may_fail) readable_at_[type] = depth;
    return may_fail;
  }

 private:
  bool FieldMayFail(const FieldSchema& field, int depth) {
    const bool any_bean =
        (field.type == "dynamic" || field.value == "dynamic") && field.choices.empty();
    if (any_bean && depth > kBeanDepthMax - AnyBean::kDepthMax) return true;
    const std::size_t comma = std::min(field.key.find(','), field.key.size());
    const int below = field.type == "gtable" ? depth + 1 : depth;
    if (MayFail(field.type, depth) || MayFail(field.value, below)) return true;
    if (MayFail(field.key.substr(0, comma), depth)) return true;
    if (comma < field.key.size() && MayFail(field.key.substr(comma + 1), below)) return true;
    for (const auto& [type_id, choice] : field.choices) {
      if (MayFail(choice, below)) return true;
    }
    return false;
  }

  const TableSchema& table_;
  std::set<std::string> open_;
  std::map<std::string, int> readable_at_;
};

}  // namespace

bool CanBeUnreadable(const TableSchema& table) {
  return ReadabilityCheck(table).MayFail(table.value_type, 0);
}

std::vector<std::string> CheckCompatible(const DatabaseSchema& stored,
                                         const DatabaseSchema& current,
                                         const CompatibilityOptions& options) {
  std::vector<std::string> problems;
  for (const auto& [name, table] : current.tables) {
    const TableSchema* old_table = stored.tables.Find(name);
    if (old_table == nullptr || !IsStored(table) || !IsStored(*old_table)) continue;
    TableCheck(*old_table, table, options, problems).Run();
  }
  return problems;
}

DatabaseSchema MergeSchemas(const DatabaseSchema& stored, const DatabaseSchema& current) {
  DatabaseSchema merged = stored;
  for (const auto& [name, table] : current.tables) {
    if (!IsStored(table)) continue;
    TableSchema next = table;
    const TableSchema* old_table = stored.tables.Find(name);
    if (old_table != nullptr && old_table->version == table.version) {
      TableMerge(*old_table, next).Run();
    }
    merged.tables.Put(name, next);
  }
  return merged;
}

}  // namespace zeze
