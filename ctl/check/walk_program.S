/*
 * ptsnap-walk SEED [ROUNDS]: executes branches of every kind, for ROUNDS rounds or without end, in an
 * order that follows from SEED and that ctl/check/walk_model.c computes too. `ptsnapctl check --trace'
 * starts the program and compares its trace with the model. No library is linked: every branch of the
 * process is in this file.
 *
 * A round first shows the lowest byte of SEED and its own number, bit by bit, as conditional
 * branches: a trace that begins anywhere shows where it is. Then come 16 to 31 steps, each of one of
 * 16 kinds. The model begins behind _start.
 *
 *   rbx  the generator (xorshift64), seeded in each round
 *   r12  rounds left, minus one; wraps around if ROUNDS was not given
 *   r13  steps left in this round
 *   r14  SEED
 *   r15  number of the round, 32 bits
 */
#include "ctl/check/walk_layout.h"

#define X(name, offset) .set WALK_##name, WALK_TEXT + offset;
WALK_LABELS(X)
#undef X
#define X(name, offset) .set WALK_##name, WALK_FAR_TEXT + offset;
WALK_FAR_LABELS(X)
#undef X

#define SYS_write      1
#define SYS_getpid     39
#define SYS_prctl      157
#define SYS_exit_group 231
#define PR_SET_NAME    15

/* Places label NAME, and fills the room before it with no-operations. The label is local: otherwise some
 * assemblers would not use short jumps to it. */
.macro	at name
	.p2align 4
	.org	WALK_\name - WALK_TEXT, 0x90
at_\name:
.endm

.macro	far_at name
	.p2align 4
	.org	WALK_\name - WALK_FAR_TEXT, 0x90
at_\name:
.endm

/* The generator's next number. */
.macro	next
	mov	%rbx, %rax
	shl	$13, %rax
	xor	%rax, %rbx
	mov	%rbx, %rax
	shr	$7, %rax
	xor	%rax, %rbx
	mov	%rbx, %rax
	shl	$17, %rax
	xor	%rax, %rbx
.endm

/* Bits FROM.. of the generator's number that MASK leaves, in the register of 32 bits. */
.macro	bits from, mask, wide, narrow
	mov	%rbx, \wide
	shr	$\from, \wide
	and	$\mask, \narrow
.endm

	.text

/* Shows SEED's byte and the round's number. */
at ROUND
	movzbl	%r14b, %eax
	shl	$32, %rax
	mov	%r15d, %ecx
	or	%rcx, %rax
	shl	$64 - WALK_SHOWN_BITS, %rax
	mov	$WALK_SHOWN_BITS, %ecx
at BIT
	add	%rax, %rax
at BIT_AT
	jnc	at_ZERO
	nop
at ZERO
	dec	%ecx
at BIT_LOOP_AT
	jnz	at_BIT

/* Seeds the generator: what SEED and the round's number give, mixed, never 0. */
	lea	1(%r15), %ebx
	movabs	$0x9e3779b97f4a7c15, %rax
	imul	%rax, %rbx
	add	%r14, %rbx
	mov	%rbx, %rax
	shr	$30, %rax
	xor	%rax, %rbx
	movabs	$0xbf58476d1ce4e5b9, %rax
	imul	%rax, %rbx
	mov	%rbx, %rax
	shr	$27, %rax
	xor	%rax, %rbx
	or	$1, %rbx
	next
	bits	8, 15, %r13, %r13d
	add	$16, %r13d

/* One step of 16 kinds. */
at STEP
	next
	bits	20, 15, %rax, %eax
at DISPATCH_AT
	jmp	*kinds(, %rax, 8)

/* Conditional branches, short ones both ways and a near one. */
at COND
	bt	$32, %rbx
at COND_A_AT
	jc	at_COND_B
	nop
at COND_B
	bt	$33, %rbx
at COND_B_AT
	jnc	at_COND_C
	nop
at COND_C
	bt	$34, %rbx
at COND_C_AT
	jc	at_ASIDE
at COND_END_AT
	jmp	at_STEP_END

/* A loop of 1 to 64 turns. */
at LOOP
	bits	32, 63, %rcx, %ecx
	inc	%ecx
at LOOP_TOP
	dec	%ecx
at LOOP_JNZ_AT
	jnz	at_LOOP_TOP
at LOOP_END_AT
	jmp	at_STEP_END

/* The instructions that count in RCX. */
at COUNT
	bits	32, 7, %rcx, %ecx
	inc	%ecx
at COUNT_TOP
	nop
at COUNT_LOOP_AT
	loop	at_COUNT_TOP
	bits	40, 1, %rcx, %ecx
at COUNT_JRCXZ_AT
	jrcxz	at_COUNT_END_AT
	nop
at COUNT_END_AT
	jmp	at_STEP_END

/* A call, and a return from it. */
at CALL
	nop
at CALL_AT
	call	at_LEAF
	nop
at CALL_END_AT
	jmp	at_STEP_END

/* Calls in calls. */
at NEST
	nop
at NEST_AT
	call	at_NEST_1_AT
	nop
at NEST_END_AT
	jmp	at_STEP_END

/* Recursion, at times deeper than the 64 returns that the processor keeps. */
at RECURSE
	bits	32, 15, %rcx, %ecx
	bits	40, 31, %rax, %eax
at RECURSE_DEEP_AT
	jnz	at_RECURSE_AT
	add	$70, %ecx
at RECURSE_AT
	call	at_SELF
	nop
at RECURSE_END_AT
	jmp	at_STEP_END

/* A call through a table. */
at ICALL
	bits	32, 3, %rax, %eax
at ICALL_AT
	call	*callees(, %rax, 8)
	nop
at ICALL_END_AT
	jmp	at_STEP_END

/* A jump through a table. CASE_1_AT and STEP_END are cases, too. */
at SWITCH
	bits	32, 3, %rax, %eax
at SWITCH_AT
	jmp	*cases(, %rax, 8)
at CASE_0
	nop
at CASE_0_AT
	jmp	at_STEP_END
at CASE_1_AT
	jmp	at_STEP_END

/* A call that returns elsewhere. */
at EXCHANGE
	nop
at EXCHANGE_AT
	call	at_SWAP
	ud2
at EXCHANGE_TO
	nop
at EXCHANGE_END_AT
	jmp	at_STEP_END

/* A call in a call, from which the return goes to the outer one's caller. */
at SKIP
	nop
at SKIP_AT
	call	at_OVER_AT
	nop
at SKIP_END_AT
	jmp	at_STEP_END

/* A return without a call. */
at PUSH
	push	$at_PUSH_TO
at PUSH_RET_AT
	ret
at PUSH_TO
	nop
at PUSH_END_AT
	jmp	at_STEP_END

/* A call to the next instruction, which the processor does not count as one. */
at HERE
	nop
at HERE_AT
	call	1f
1:	pop	%rax
at HERE_END_AT
	jmp	at_STEP_END

/* A system call, one time in 8. */
at SYSCALL
	bits	32, 7, %rax, %eax
at SYSCALL_JNZ_AT
	jnz	at_SYSCALL_END_AT
	mov	$SYS_getpid, %eax
at SYSCALL_AT
	syscall
	nop
at SYSCALL_END_AT
	jmp	at_STEP_END

/* A call through a register. */
at REGISTER
	mov	$at_LEAF, %eax
at REGISTER_AT
	call	*%rax
	nop
at REGISTER_END_AT
	jmp	at_STEP_END

/* A short jump. */
at SHORT
	nop
at SHORT_AT
	jmp	at_SHORT_TO
	nop
at SHORT_TO
	nop
at SHORT_END_AT
	jmp	at_STEP_END

/* STEP_END lies so far away that all jumps to it are near ones. */
at STEP_END
	dec	%r13d
at STEP_LOOP_AT
	jnz	at_STEP
	inc	%r15d
	dec	%r12
at LAST_AT
	jz	at_EXIT
at AGAIN_AT
	jmp	at_ROUND
at EXIT
	xor	%edi, %edi
	mov	$SYS_exit_group, %eax
at EXIT_AT
	syscall
	ud2

at ASIDE
	nop
at ASIDE_AT
	jmp	at_COND_END_AT

at LEAF
	nop
at LEAF_RET_AT
	ret

at NEST_1_AT
	call	at_NEST_2_AT
	nop
at NEST_1_RET_AT
	ret
at NEST_2_AT
	call	at_LEAF
	nop
at NEST_2_RET_AT
	ret

/* ecx levels more. */
at SELF
	test	%ecx, %ecx
at SELF_JZ_AT
	jz	at_SELF_RET_AT
	dec	%ecx
at SELF_AT
	call	at_SELF
	nop
at SELF_RET_AT
	ret

at TAIL
	mov	$at_LEAF, %eax
at TAIL_AT
	jmp	*%rax

at SWAP
	movq	$at_EXCHANGE_TO, (%rsp)
at SWAP_RET_AT
	ret

at OVER_AT
	call	at_DROP
	ud2
at DROP
	add	$8, %rsp
at DROP_RET_AT
	ret

/* Takes its name, reads the arguments, says a line that it begins; then as above. */
	.globl	_start
_start:
	mov	$SYS_prctl, %eax
	mov	$PR_SET_NAME, %edi
	mov	$name, %esi
	syscall
	mov	16(%rsp), %rsi
	call	number
	mov	%rax, %r14
	xor	%esi, %esi
	cmpq	$2, (%rsp)
	jbe	1f
	mov	24(%rsp), %rsi
1:	call	number
	mov	%rax, %r12
	mov	$SYS_write, %eax
	mov	$1, %edi
	mov	$line, %esi
	mov	$line_end - line, %edx
	syscall
	xor	%r15d, %r15d
	jmp	at_ROUND

/* rsi, a decimal number, or NULL -> rax. */
number:
	xor	%eax, %eax
	test	%rsi, %rsi
	jz	2f
1:	movzbl	(%rsi), %ecx
	inc	%rsi
	sub	$'0', %ecx
	cmp	$9, %ecx
	ja	2f
	imul	$10, %rax, %rax
	add	%rcx, %rax
	jmp	1b
2:	ret

/* Read, never executed. Here, so that the linker has nothing of its own to place. */
	.balign	8
kinds:
	.quad	at_COND, at_COND, at_LOOP, at_COUNT
	.quad	at_CALL, at_NEST, at_RECURSE, at_ICALL
	.quad	at_SWITCH, at_EXCHANGE, at_SKIP, at_PUSH
	.quad	at_HERE, at_SYSCALL, at_REGISTER, at_SHORT
callees:
	.quad	at_LEAF, at_NEST_2_AT, at_FAR_LEAF, at_TAIL
cases:
	.quad	at_CASE_0, at_CASE_1_AT, at_FAR_CASE, at_STEP_END
name:
	.asciz	"ptsnap-walk"
line:
	.ascii	"walking\n"
line_end:

	.section .far, "ax", @progbits

far_at FAR_LEAF
	nop
far_at FAR_RET_AT
	ret
far_at FAR_CASE
	mov	$at_STEP_END, %eax
far_at FAR_CASE_AT
	jmp	*%rax

	.section .note.GNU-stack, "", @progbits
