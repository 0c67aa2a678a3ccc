// CRC-32C (Castagnoli), the checksum of iSCSI and of TensorFlow's files.
#pragma once

#include <cstdint>
#include <string_view>

namespace bev {

uint32_t crc32c(std::string_view bytes);

}  // namespace bev
