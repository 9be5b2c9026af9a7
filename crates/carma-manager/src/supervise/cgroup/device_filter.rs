//! Denies a group access to GPUs of other jobs. Version 2 has no file for that: a small program in the kernel decides.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The major number of NVIDIA's GPUs. Its highest minor numbers are for control and mode setting, which every job needs.
pub(super) const GPU_MAJOR: u32 = 195;
pub(super) const CONTROL_MINORS: [u32; 2] = [254, 255];

/// Denies all character devices with this major number, except those with these minor numbers, to a group of version 2.
pub(super) fn deny_others(group: &Path, major: u32, allowed: &[u32]) -> io::Result<()> {
    let program = load(&instructions(major, allowed))?;
    attach(&File::open(group)?, &program)
}

/// One instruction of the kernel's virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// Loads a word of the request into a register; compares a register with a number and jumps; masks; sets; ends.
const LOAD: u8 = 0x61;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_UNLESS_EQUAL: u8 = 0x55;
const AND: u8 = 0x57;
const SET: u8 = 0xb7;
const EXIT: u8 = 0x95;

/// Register 1 points to the request: kind of device and access, major, minor. Register 0 is the answer: 1 permits.
fn instructions(major: u32, allowed: &[u32]) -> Vec<Instruction> {
    const CHARACTER_DEVICE: i32 = 2;
    const KIND_MASK: i32 = 0xffff;
    let at = |code, registers, offset, value| Instruction { code, registers, offset, value };
    // Instructions between a check and the permission at the end.
    let to_permit = |left: usize| i16::try_from(left).unwrap_or(i16::MAX);
    let minors = allowed.len();
    let mut program = vec![
        at(LOAD, 0x12, 0, 0),
        at(AND, 0x02, 0, KIND_MASK),
        at(JUMP_UNLESS_EQUAL, 0x02, to_permit(minors + 5), CHARACTER_DEVICE),
        at(LOAD, 0x12, 4, 0),
        at(JUMP_UNLESS_EQUAL, 0x02, to_permit(minors + 3), major.cast_signed()),
        at(LOAD, 0x12, 8, 0),
    ];
    program.extend(
        allowed.iter().enumerate().map(|(place, minor)| at(JUMP_IF_EQUAL, 0x02, to_permit(minors - place + 1), minor.cast_signed())),
    );
    program.extend([at(SET, 0x00, 0, 0), at(EXIT, 0, 0, 0), at(SET, 0x00, 0, 1), at(EXIT, 0, 0, 0)]);
    program
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log: [u64; 2],
        version_and_flags: u64,
    }
    const COMMAND: i64 = 5;
    const CGROUP_DEVICE: u32 = 15;
    let load = Load {
        kind: CGROUP_DEVICE,
        count: u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        instructions: instructions.as_ptr() as u64,
        license: c"MIT OR Apache-2.0".as_ptr() as u64,
        log: [0; 2],
        version_and_flags: 0,
    };
    let descriptor = bpf(COMMAND, &load)?;
    #[expect(unsafe_code, reason = "a descriptor from a system call without a wrapper")]
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?) })
}

/// Other programs of the group, such as those of systemd, stay: all must permit.
fn attach(group: &File, program: &OwnedFd) -> io::Result<()> {
    #[repr(C)]
    struct Attach {
        group: i32,
        program: i32,
        kind: u32,
        flags: u32,
    }
    const COMMAND: i64 = 8;
    const CGROUP_DEVICE: u32 = 6;
    const ALLOW_MULTIPLE: u32 = 2;
    let attach = Attach { group: group.as_raw_fd(), program: program.as_raw_fd(), kind: CGROUP_DEVICE, flags: ALLOW_MULTIPLE };
    bpf(COMMAND, &attach).map(drop)
}

fn bpf<T>(command: i64, attributes: &T) -> io::Result<i64> {
    #[expect(unsafe_code, reason = "a system call without a wrapper")]
    // SAFETY: the kernel reads as many bytes of the attributes as the size says; all their pointers are valid during the call.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program on a request, as the kernel would.
    fn permits(program: &[Instruction], request: [u32; 3]) -> bool {
        let (mut answer, mut register, mut next) = (0, 0, 0_usize);
        loop {
            let Instruction { code, registers, offset, value } = program[next];
            next += 1;
            let jump = usize::try_from(offset).unwrap();
            match code {
                LOAD => register = request[jump / 4].cast_signed(),
                AND => register &= value,
                JUMP_IF_EQUAL if register == value => next += jump,
                JUMP_UNLESS_EQUAL if register != value => next += jump,
                SET if registers == 0 => answer = value,
                EXIT => return answer == 1,
                _ => {}
            }
        }
    }

    #[test]
    fn only_gpus_of_other_jobs_are_denied() {
        const CHARACTER: u32 = 2 | (3 << 16);
        for allowed in [vec![], vec![1], vec![0, 2, 254, 255]] {
            let program = instructions(GPU_MAJOR, &allowed);
            for minor in [0, 1, 2, 3, 254, 255] {
                assert_eq!(permits(&program, [CHARACTER, GPU_MAJOR, minor]), allowed.contains(&minor), "{minor} of {allowed:?}");
                assert!(permits(&program, [CHARACTER, 1, minor]), "other devices");
                assert!(permits(&program, [1, GPU_MAJOR, minor]), "disks");
            }
        }
    }
}
