/* The program of the pause images: it waits for SIGTERM or SIGINT and ends.

   It is process 1 of a pod, for which the kernel drops a signal that it neither
   handles nor blocks. CRI-O sends SIGTERM once, and may do so just after it
   started the pod. So this blocks the signals with its first instructions, before
   any runtime of a language could, and takes them from there. What it inherits
   as process 1 the kernel reaps, as SIGCHLD is ignored. */

#include <asm/unistd.h>

#ifndef __x86_64__
#error "the test images are for amd64"
#endif

enum { BLOCK = 0, IGNORE = 1, SIZE = 8, INT = 2, TERM = 15, CHLD = 17 };

static long call(long number, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return result;
}

void _start(void)
{
	const unsigned long ends = 1UL << (INT - 1) | 1UL << (TERM - 1);
	const struct { unsigned long handler, flags, restorer, mask; } ignore = { IGNORE, 0, 0, 0 };

	call(__NR_rt_sigprocmask, BLOCK, (long)&ends, 0, SIZE);
	call(__NR_rt_sigaction, CHLD, (long)&ignore, 0, SIZE);
	while (call(__NR_rt_sigtimedwait, (long)&ends, 0, 0, SIZE) < 0)
		; /* interrupted by a stop and a continuation */
	call(__NR_exit_group, 0, 0, 0, 0);
	__builtin_unreachable();
}
