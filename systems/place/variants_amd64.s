#include "go_asm.h"
#include "textflag.h"

// The loop of variants.go for x86-64 with AVX2: the times of eight variants
// share a register. Rows, targets, sites and slots are those that the module
// was checked for and Go worked out; it stops at what Go has to do.

// func walkVariants(w *variantWalk, lo, hi uint32) uint32
TEXT ·walkVariants(SB), NOSPLIT, $0-20
	MOVQ w+0(FP), DI
	MOVL lo+8(FP), BX
	MOVQ variantWalk_off(DI), R8
	MOVQ variantWalk_words(DI), R9
	MOVQ variantWalk_arrive(DI), R10
	MOVQ variantWalk_site(DI), R11
	MOVQ variantWalk_issue(DI), R12
	MOVQ variantWalk_latency(DI), R13
	MOVQ variantWalk_slots(DI), R15
	VMOVDQU variantWalk_last(DI), Y10
	VMOVDQU variantWalk_least(DI), Y11
	VPXOR Y12, Y12, Y12

row:
	CMPL BX, hi+12(FP)
	JAE  done
	MOVWLZX (R11)(BX*2), AX
	SHLQ $7, AX
	MOVQ variantWalk_sites(DI), SI
	ADDQ AX, SI
	CMPL siteSlots_loop(SI), $0
	JNE  done
	MOVL (R8)(BX*4), AX
	MOVL 4(R8)(BX*4), CX
	VPXOR Y0, Y0, Y0

edge:
	CMPQ AX, CX
	JAE  waits
	MOVL (R9)(AX*4), R14
	INCQ AX
	MOVL R14, DX
	SHRL $const_classShift, DX
	CMPL DX, $const_classOrdered
	JEQ  done
	ANDL $const_targetMask, R14
	SHLQ $5, R14
	SHLQ $5, DX
	VMOVDQU (R10)(R14*1), Y1
	VPAND variantWalk_keep(DI)(DX*1), Y1, Y1
	VPMAXUD Y1, Y0, Y0
	JMP  edge

waits:
	MOVL siteSlots_numWaits(SI), CX
	XORL AX, AX

wait:
	CMPL AX, CX
	JAE  costs
	MOVL siteSlots_waits(SI)(AX*4), R14
	INCL AX
	VPMAXUD (R15)(R14*1), Y0, Y0
	JMP  wait

costs:
	VPBROADCASTD (R12)(BX*4), Y1 // issue interval
	VPBROADCASTD (R13)(BX*4), Y2 // latency
	MOVQ variantWalk_hit(DI), AX
	MOVBLZX (AX)(BX*1), AX
	TESTL AX, AX
	JEQ  times
	SHLQ $5, AX
	ADDQ variantWalk_expand(DI), AX
	VMOVDQU (AX), Y3
	VPANDN Y1, Y3, Y1 // no issue interval where it is hit
	VPMINUD Y2, Y11, Y4
	VPBLENDVB Y3, Y4, Y2, Y2

times:
	VPADDD Y0, Y1, Y1 // when it leaves its lane
	VPADDD Y0, Y2, Y5 // when it ends
	VPMAXUD Y5, Y10, Y10
	MOVL BX, AX
	SHLQ $5, AX
	VMOVDQU Y5, (R10)(AX*1)
	MOVL siteSlots_lane(SI), AX
	VMOVDQU Y1, (R15)(AX*1)
	MOVL siteSlots_numTakes(SI), CX
	TESTL CX, CX
	JEQ  next
	VPCMPEQD Y12, Y2, Y6 // where it does not work
	XORL AX, AX

take:
	MOVL siteSlots_takes(SI)(AX*4), R14
	INCL AX
	VMOVDQA Y1, Y7
	TESTL $const_takeAtEnd, R14
	JEQ  taken
	VMOVDQA Y5, Y7
	ANDL $~const_takeAtEnd, R14

taken:
	VMOVDQU (R15)(R14*1), Y8
	VPBLENDVB Y6, Y8, Y7, Y7
	VMOVDQU Y7, (R15)(R14*1)
	CMPL AX, CX
	JB   take

next:
	INCL BX
	JMP  row

done:
	VMOVDQU Y10, variantWalk_last(DI)
	VZEROUPPER
	MOVL BX, ret+16(FP)
	RET
