// Plain text cut into documents.
#pragma once

#include <string_view>

#include "base/function_ref.h"

namespace bev {

enum class DocumentBreak : uint8_t { Line, Paragraph, File };
inline constexpr std::string_view kDocumentBreakNames[] = {"line", "paragraph", "file"};

// Calls f for each document, in order. Line: what stands between line ends. Paragraph: what stands
// between blank lines, line ends inside kept. File: all of it. Documents without anything but
// blanks are left out; a line end is "\n" or "\r\n" and, at the end of a document, not part of it.
void for_each_document(std::string_view text, DocumentBreak documents,
                       FunctionRef<void(std::string_view)> f);

}  // namespace bev
