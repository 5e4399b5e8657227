// A compiled module, as it passes through cupy and its cache: a word of ours, then the path of a shared library.
#pragma once

#include <cstring>
#include <string>

namespace emulation {

const char IMAGE_WORD[] = "EMULATED:";

inline std::string image_of(const std::string &path)
{
    return IMAGE_WORD + path;
}

// Empty if the image is not one of ours.
inline std::string path_in_image(const char *image)
{
    const size_t length = strlen(IMAGE_WORD);
    return strncmp(image, IMAGE_WORD, length) == 0 ? image + length : "";
}

}   // namespace emulation
