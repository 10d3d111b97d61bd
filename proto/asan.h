/*
 * How this was built.
 */
#pragma once

/* Whether this is built with AddressSanitizer: gcc says so with a macro, clang with a feature. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILT_WITH_ASAN 1
#endif
#endif
#if !defined(BUILT_WITH_ASAN) && defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_ASAN 1
#elif !defined(BUILT_WITH_ASAN)
#define BUILT_WITH_ASAN 0
#endif
