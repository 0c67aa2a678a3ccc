// How a configuration describes itself: each field is named, explained and bounded once, beside its
// declaration. Flags, TOML, help text, range checks and printing are walks over that description.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace bev {

using TextList = std::vector<std::string>;

// What a change of the field means for a run resumed from a checkpoint.
enum class Effect : uint8_t {
  Runtime,   // anything goes
  Layout,    // allowed; the checkpoint is resharded
  Numerics,  // allowed with a warning: the curve changes
  Model,     // refused: another model
};

// A Megatron-LM flag that sets the field. With `sets`, the flag takes no value and means this one.
// With `values`, Megatron's words for our choices, in the order of the enum ("" where it has none,
// several with blanks between). With `only_from`, the flag refines that value and means nothing
// otherwise; such flags are applied after all others, in the order of the description, wherever
// they stand on the command line. `later` are Megatron's words for what is missing here. With
// `reads`, Megatron's notation is turned into ours first; what cannot be turned comes back as it
// is. With `part` n > 0, the flag sets several fields, each by an alias of its own, and this one by
// its n-th value.
struct Alias {
  std::string_view flag;
  std::string_view sets{};
  std::vector<std::string_view> values{};
  std::string_view only_from{};
  std::string_view later{};
  std::string (*reads)(std::string_view text) = nullptr;
  size_t part = 0;
};

struct FieldInfo {
  std::string_view help;
  Effect effect = Effect::Runtime;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<Alias> aliases{};
  std::string_view formerly{};  // earlier key of the field: still read, with a note
};

// Calls f("optim.lr", field, about) for every field of a section.
template <class F>
struct Walk {
  F& f;
  std::string prefix;

  template <class T>
  void operator()(std::string_view name, T& field, const FieldInfo& about) {
    f(prefix + std::string(name), field, about);
  }
  template <class S>
  void section(std::string_view name, S& s, std::string_view /*title*/) {
    Walk<F> inner{f, prefix + std::string(name) + "."};
    std::remove_const_t<S>::describe(s, inner);
  }
};

// Visits every field of a configuration in declaration order. C is Config or const Config.
template <class C, class F>
void walk(C& config, F f) {
  Walk<F> w{f, ""};
  std::remove_const_t<C>::describe(config, w);
}

}  // namespace bev
