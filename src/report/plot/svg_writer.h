// A figure as SVG.
#pragma once

#include <string>

#include "report/plot/figure.h"

namespace bev {

// A static file that needs nothing else.
std::string to_svg(const Figure& figure);

// The drawing inside a page: every panel that has two scales is there with both, in groups of the
// classes "linear" and "log"; panels say in data-* attributes where their axes lie.
std::string svg_for_page(const Figure& figure);

}  // namespace bev
