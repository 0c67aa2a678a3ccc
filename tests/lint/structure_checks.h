// Checks of the shape of the tree: folders, files, names. Their limits and tables are in
// checks.cpp.
#pragma once

#include <span>

#include "lint/source_tree.h"

namespace bev::lint {

// No folder of src/ or tests/ holds more than `limit` files, not counting its sub-folders.
Report check_folder_size(const std::filesystem::path& root, size_t limit);

// At most `limit` files of src/ have fewer than `lines` lines.
Report check_small_files(const std::filesystem::path& root, size_t lines, size_t limit);

// No two folders of src/ hold files with the same stem. An op has one stem in all `op_places`, once
// in each; a place that ends with a slash includes its sub-folders.
Report check_file_names(const std::filesystem::path& root,
                        std::span<const std::string_view> op_places);

// No two namespaces have a type of the same name in the headers of src/, except for `allowed`.
Report check_type_names(const std::filesystem::path& root,
                        std::span<const std::string_view> allowed);

// The own header of a source is its first include; <x.h>, <x> and "x" follow, each sorted.
Report check_include_order(const std::filesystem::path& root);

// A phrase that names in src/ may no longer contain, as words with blanks between, and the term of
// the field.
struct PrivateTerm {
  std::string_view phrase, term;
};
Report check_private_terms(const std::filesystem::path& root, std::span<const PrivateTerm> terms);

// Only src/model, which declares parameters, and src/convert, which translates their names, spell
// them; other folders ask for a role. A name is a literal of src/model/family with a dot, what
// begins with one that ends with a dot, or an ending: ".norm1.weight".
Report check_parameter_names(const std::filesystem::path& root);

// Sources of one library do not define the same name in unnamed namespaces, since unity builds
// compile them together. `separate` are the folders and endings of sources compiled alone.
Report check_unity_names(const std::filesystem::path& root,
                         std::span<const std::string_view> separate);

}  // namespace bev::lint
