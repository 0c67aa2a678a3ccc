// The page at /, for trying the model in a browser.
#pragma once

#include "serve/http/http_message.h"

namespace bev {

// One file that loads nothing: the browser is told not to.
HttpResponse web_page();

}  // namespace bev
