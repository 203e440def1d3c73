#include "go_asm.h"
#include "textflag.h"

// The two loops of walk.go for x86-64 with AVX. A time of run A and one of
// run B share a register; times are below 2^63, so the signed comparison of
// 64-bit lanes is theirs. Nothing is read or written outside the arrays
// whatever the tables hold: targets are clamped to the zero row, offsets and
// lanes that do not fit end the loop, and the Go code meets them with its
// checks.

// dst = max(x, y) lane by lane; m is overwritten.
#define MAXPAIR(x, y, m, dst) \
	VPCMPGTQ y, x, m; \
	VBLENDVPD m, x, y, dst

// The pair (A of target a, B of target b) of slot k into dst.
#define GATHER(k, dst) \
	MOVL     (k*4)(SI), AX; \
	MOVL     (16+k*4)(SI), DX; \
	VMOVSD   (DI)(AX*8), dst; \
	VMOVHPS  8(DI)(DX*8), dst, dst

#define PREFETCH(k) \
	MOVL        (k*4)(SI), DX; \
	PREFETCHT0  (DI)(DX*8)

DATA slots<>+0(SB)/4, $0
DATA slots<>+4(SB)/4, $1
DATA slots<>+8(SB)/4, $2
DATA slots<>+12(SB)/4, $3
GLOBL slots<>(SB), RODATA|NOPTR, $16

DATA low32<>+0(SB)/8, $0x00000000ffffffff
DATA low32<>+8(SB)/8, $0x00000000ffffffff
GLOBL low32<>(SB), RODATA|NOPTR, $16

// func padRows(b *block) int
TEXT ·padRows(SB), NOSPLIT, $0-16
	MOVQ     b+0(FP), R15
	MOVQ     block_off(R15), R8
	MOVQ     block_words(R15), R9
	MOVQ     block_flags(R15), R10
	MOVQ     block_banks(R15), R11
	MOVQ     block_arrive(R15), DI
	MOVQ     block_rows(R15), R12
	MOVL     block_numWords(R15), R13
	LEAQ     block_pad(R15), SI
	LEAQ     block_state(R15), R14
	VMOVD    block_zero(R15), X13
	VPSHUFD  $0, X13, X13            // the zero row, times two
	VPCMPEQD X12, X12, X12           // -1: class Anti, shifted with its sign
	VPADDD   X12, X12, X11           // -2: class Ordered
	VMOVDQU  slots<>(SB), X10
	XORL     BX, BX
	MOVL     (R8), CX                // where the row's edges start

padRow:
	CMPQ       BX, R12
	JGE        padDone
	LEAQ       4(CX), AX
	CMPQ       AX, R13               // four words can be read
	JA         padDone
	MOVL       4(R8)(BX*4), DX       // where they end
	VMOVDQU    (R9)(CX*4), X0
	SUBL       CX, DX                // edges of the row
	VMOVD      DX, X1
	VPSHUFD    $0, X1, X1
	VPCMPGTD   X10, X1, X1           // slots in use
	VPSRAD     $30, X0, X2
	VPCMPEQD   X12, X2, X3           // anti-dependencies
	VPCMPEQD   X11, X2, X4
	VPAND      X1, X4, X4
	VMOVMSKPS  X4, AX                // ordered edges
	VPSLLD     $2, X0, X0
	VPSRLD     $1, X0, X0            // targets, times two
	VPMINUD    X13, X0, X0
	VPBLENDVB  X1, X0, X13, X0
	VPBLENDVB  X3, X13, X0, X5
	VMOVDQU    X0, (SI)
	VMOVDQU    X5, 16(SI)
	SHLL       $4, AX
	ADDL       DX, CX                // the next row's start
	CMPL       DX, $4
	JHI        padMore

padState:
	MOVL       (R10)(BX*4), DX
	ANDL       $const_special, DX
	ORL        DX, AX
	MOVWLZX    (R11)(BX*2), DX
	SHLL       $16, DX
	ORL        DX, AX
	MOVL       AX, (R14)(BX*4)
	CMPL       block_near(R15), $0
	JNE        padNext
	PREFETCH(0)
	PREFETCH(1)
	PREFETCH(2)
	PREFETCH(3)

padNext:
	ADDQ       $32, SI
	INCQ       BX
	JMP        padRow

	// More than four edges: the rest stays where it is and is asked for.
	// An end before the start is here too, as a very large number.
padMore:
	CMPL       CX, R13
	JA         padDone
	ORL        $0x100, AX
	MOVL       (R8)(BX*4), R12
	ADDQ       $4, R12               // the fifth word
	CMPQ       R12, CX
	JAE        padDone

padMoreEdge:
	MOVL       (R9)(R12*4), R13
	MOVL       R13, DX
	SHRL       $30, DX
	CMPL       DX, $const_classOrdered
	JNE        padMoreNext
	ORL        $0x10, AX

padMoreNext:
	ANDL       $const_targetMask, R13
	SHLQ       $4, R13
	PREFETCHT0 (DI)(R13*1)
	INCQ       R12
	CMPQ       R12, CX
	JB         padMoreEdge
	MOVQ       block_rows(R15), R12
	MOVL       block_numWords(R15), R13
	JMP        padState

padDone:
	MOVQ       BX, ret+8(FP)
	RET

// The lane of row BX: its number times 16 into AX, what it is free at into
// X4. A lane that is not there ends the loop.
#define LANE \
	MOVWLZX  (R12)(BX*2), AX; \
	CMPL     AX, CX; \
	JAE      walkDone; \
	SHLQ     $4, AX; \
	VMOVDQU  (R13)(AX*1), X4

// start (X0) + issue into the lane and X6, start + latency into arrive, the
// largest end into X15.
#define FINISH \
	VBROADCASTSS (R10)(BX*4), X5; \
	VPAND        X14, X5, X5; \
	VPADDQ       X0, X5, X6; \
	VMOVDQU      X6, (R13)(AX*1); \
	VBROADCASTSS (R11)(BX*4), X7; \
	VPAND        X14, X7, X7; \
	VPADDQ       X0, X7, X7; \
	VMOVDQU      X7, (R9); \
	MAXPAIR(X15, X7, X8, X15)

// func walkRows(b *block, from, to int) int
TEXT ·walkRows(SB), NOSPLIT, $0-32
	MOVQ     b+0(FP), DX
	MOVQ     from+8(FP), BX
	MOVQ     to+16(FP), R8
	MOVQ     block_arrive(DX), DI
	MOVQ     block_issue(DX), R10
	MOVQ     block_latency(DX), R11
	MOVQ     block_lane(DX), R12
	MOVQ     block_free(DX), R13
	MOVL     block_lanes(DX), CX
	LEAQ     block_state(DX), R15
	LEAQ     block_pad(DX), SI
	MOVQ     BX, AX
	SHLQ     $5, AX
	ADDQ     AX, SI
	MOVQ     block_out(DX), R9
	SHRQ     $1, AX
	ADDQ     AX, R9
	VMOVDQU  low32<>(SB), X14
	VMOVDQU  block_last(DX), X15
	CMPQ     BX, R8
	JGE      walkDone

walkRow:
	MOVL     (R15)(BX*4), R14
	TESTL    $0xff, R14
	JNE      walkDone                // the Go code's
	GATHER(0, X0)
	GATHER(1, X1)
	GATHER(2, X2)
	GATHER(3, X3)
	MAXPAIR(X0, X1, X8, X0)
	MAXPAIR(X2, X3, X9, X2)
	MAXPAIR(X0, X2, X8, X0)
	TESTL    R14, R14
	JNE      walkMore

walkPlain:
	LANE
	MAXPAIR(X0, X4, X8, X0)
	FINISH

walkNext:
	ADDQ     $16, R9
	ADDQ     $32, SI
	INCQ     BX
	CMPQ     BX, R8
	JLT      walkRow

walkDone:
	MOVQ     b+0(FP), DX
	VMOVDQU  X15, block_last(DX)
	MOVQ     BX, ret+24(FP)
	RET

	// A row with more than four edges, with PSUM banks, or with both.
walkMore:
	TESTL    $0x100, R14
	JEQ      walkBanks
	MOVQ     b+0(FP), DX
	MOVQ     block_off(DX), AX
	MOVL     4(AX)(BX*4), CX
	MOVL     (AX)(BX*4), AX
	ADDQ     $4, AX                  // the fifth word

walkEdge:
	MOVQ     block_words(DX), R14
	MOVL     (R14)(AX*4), R14
	CMPL     R14, $const_firstAnti
	JAE      walkAnti
	ANDL     $const_targetMask, R14
	ADDL     R14, R14
	CMPL     R14, block_zero(DX)
	CMOVLHI  block_zero(DX), R14
	VMOVDQU  (DI)(R14*8), X1
	MAXPAIR(X0, X1, X8, X0)
	INCQ     AX
	CMPQ     AX, CX
	JB       walkEdge
	JMP      walkEdges

walkAnti:
	ANDL     $const_targetMask, R14
	ADDL     R14, R14
	CMPL     R14, block_zero(DX)
	CMOVLHI  block_zero(DX), R14
	VMOVSD   (DI)(R14*8), X1
	MAXPAIR(X0, X1, X8, X0)
	INCQ     AX
	CMPQ     AX, CX
	JB       walkEdge

walkEdges:
	MOVL     block_lanes(DX), CX
	MOVL     (R15)(BX*4), R14

walkBanks:
	SHRL     $16, R14
	JEQ      walkPlain
	LANE
	MAXPAIR(X0, X4, X8, X0)
	MOVQ     b+0(FP), DX
	MOVQ     block_bankOf(DX), CX
	SHRQ     $2, AX
	MOVL     (CX)(AX*1), CX
	SHLQ     $2, AX
	ADDQ     block_bank(DX), CX       // the banks of the lane's core
	MOVL     R14, DX
	SHRL     $8, DX                  // those written
	JEQ      walkStart

walkWait:
	BSFL     DX, SI
	SHLQ     $4, SI
	VMOVDQU  (CX)(SI*1), X5
	MAXPAIR(X0, X5, X8, X0)
	LEAL     -1(DX), SI
	ANDL     SI, DX
	JNE      walkWait

walkStart:
	FINISH
	CMPL     (R11)(BX*4), $0
	JEQ      walkUsed
	MOVL     R14, DX
	SHRL     $8, DX
	ORL      R14, DX
	ANDL     $0xff, DX               // those read or written

walkUse:
	BSFL     DX, SI
	SHLQ     $4, SI
	VMOVDQU  X6, (CX)(SI*1)
	LEAL     -1(DX), SI
	ANDL     SI, DX
	JNE      walkUse

walkUsed:
	MOVQ     b+0(FP), DX
	MOVL     block_lanes(DX), CX
	MOVQ     BX, SI
	SHLQ     $5, SI
	LEAQ     block_pad(DX)(SI*1), SI
	JMP      walkNext
