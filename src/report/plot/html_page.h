// A figure as a page for a browser.
#pragma once

#include <string>

#include "report/plot/figure.h"

namespace bev {

// One HTML file that needs nothing else, light or dark as the reader prefers. Without JavaScript it
// shows the drawing, both scales and the notes; with it also the numbers under the pointer.
std::string to_html(const Figure& figure);

}  // namespace bev
