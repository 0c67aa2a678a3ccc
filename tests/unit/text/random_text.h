// Texts of characters that tokenizers treat in different ways.
#pragma once

#include <random>
#include <string>

namespace bev::test {

// Valid UTF-8 of at most so many characters: ASCII, white space, marks, letters of many scripts.
std::string random_text(std::mt19937& random, size_t characters);

}  // namespace bev::test
