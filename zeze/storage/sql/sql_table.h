// SqlTable: a table of the columns id and value in an SQL database.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/storage.h"

namespace zeze {

class SqlTable final : public StorageTable {
 public:
  SqlTable(SqlPool& pool, const SqlDialect& dialect, std::string name, std::string_view relation);

  const std::string& name() const override { return name_; }
  Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override;
  Result<void> FindMany(std::span<const std::string_view> keys,
                        FunctionRef<void(std::size_t, std::string_view)> found) override;
  Result<std::size_t> Walk(const StorageWalk& walk,
                           FunctionRef<bool(std::string_view, std::string_view)> row) override;
  Result<std::uint64_t> SizeApprox() override;

  const std::string& relation() const { return relation_; }  // Quoted.
  const SqlTableWords& words() const { return words_; }

 private:
  Result<SqlAnswer> Read(std::string_view what, FunctionRef<SqlAnswer(SqlConnection&)> read);

  SqlPool& pool_;
  const SqlDialect& dialect_;
  const std::string name_;
  const std::string bare_relation_;
  const std::string relation_;
  const SqlTableWords words_;
};

}  // namespace zeze
