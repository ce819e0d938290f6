// Opening a library of the machine that may be missing, and finding functions in it.
#pragma once

#include <dlfcn.h>

namespace sidetone {

/**
 * Loads a shared library that may be missing, with its names kept to itself. It is never closed, as its functions are
 * called until the process ends.
 *
 * @param name the file name with the number of its interface, such as `libmpg123.so.0`.
 * @return a handle for `find_function`, or null where the library is not on this machine.
 */
inline void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

/**
 * Looks up a function of a library by its name.
 *
 * @param function set to the function, or to null.
 * @return false where the library has none of that name.
 */
template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace sidetone
