"""Which Thumb instructions must have an aligned address, whatever CCR.UNALIGN_TRP says.

Source: DDI 0403E, A3.2.1: LDM, STM, PUSH, POP, LDRD, STRD, LDREX, STREX, VLDR, VSTR, VLDM, VSTM, VPUSH, VPOP.
"""

from __future__ import annotations


def needs_alignment(first: int, second: int) -> bool:
    """For the halfwords of an instruction; ``second`` is not looked at for a short one."""
    if first >> 12 == 0xC or first & 0xFE00 in (0xB400, 0xBC00):  # LDM, STM; PUSH, POP
        return True
    if first & 0xFE00 == 0xE800:  # load/store multiple, dual and exclusive; not TBB and TBH
        return not (first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000)
    return first & 0xFE00 == 0xEC00 and second >> 8 & 0xF in (10, 11)  # VLDR, VSTR, VLDM, VSTM


def is_unaligned(address: int, size: int) -> bool:
    """A doubleword needs a word's alignment."""
    return bool(address % min(size, 4))
