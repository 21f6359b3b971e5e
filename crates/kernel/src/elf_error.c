/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The part of libelf that keeps the last error. That of a distribution's libelf.a has a thread-local variable in a way that only an
 * executable can have, and a Python module is none; the rest of the archive fits everywhere. Whoever defines these three first keeps
 * libelf's own from being linked. They behave as elf_errno(3) and elf_errmsg(3) say. */

#include <stdio.h>

static __thread int last;
static __thread char text[32];

__attribute__((visibility("hidden"))) void __libelf_seterrno(int value)
{
	last = value;
}

int elf_errno(void)
{
	int value = last;

	last = 0;
	return value;
}

const char *elf_errmsg(int error)
{
	if (error == 0 && last == 0)
		return NULL;
	if (error == 0 || error == -1)
		error = last;
	snprintf(text, sizeof(text), error ? "libelf's error %d" : "no error", error);
	return text;
}
