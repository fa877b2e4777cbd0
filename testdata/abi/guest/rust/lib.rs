//! The program of README.md, in Rust. Of the crate it uses the host functions as they are.

use std::ptr::{addr_of, addr_of_mut};

use wasmproxy::abi::host;

const MANIFEST: &[u8] = br#"{"name":"conformance","version":"1.0.0","hooks":["PreRunPodSandbox","PostRunPodSandbox","PreCreateContainer","PostCreateContainer","PreStartContainer","PostStartContainer","PreUpdateContainerResources","PostUpdateContainerResources","PostStopContainer","PostRemoveContainer","PostStopPodSandbox","PreStopContainer","PreRemoveContainer","PreStopPodSandbox","PreRemovePodSandbox","PostRemovePodSandbox","PreUpdatePodSandboxResources","PostUpdatePodSandboxResources","PreExec","PostExec","PreExecSync","PostExecSync","PreAttach","PostAttach","PrePortForward","PostPortForward","PreCheckpointContainer","PostCheckpointContainer","PreCheckpointPod","PostCheckpointPod","PreRestorePod","PostRestorePod","PrePullImage","PostPullImage","PreRemoveImage","PostRemoveImage","Synchronize","Tick"],"tick_ms":1000,"capabilities":["store.read","resources","unified","annotations","labels","cgroup.write","metric","env","cgroup.read","cgroup.parent","runtime_handler","image","args","mounts","devices","cdi","user","update.others","state.kv","cri.raw","credentials","pod.limits","store.read.all"]}"#;

#[unsafe(link_section = "wp.manifest")]
pub static SECTION: [u8; MANIFEST.len()] = *MANIFEST.first_chunk().unwrap();

const ROOM: usize = 4096;

/// What the program knows. There is one, as a guest serves one call at a time.
struct Machine {
    script: [u8; 384 << 10],
    pc: usize,
    buffer: [u8; ROOM],
    texts: [u8; (1 << 20) + 16],
    used: usize,
    line: [u8; 9000],
    written: usize,
    args: [i64; 8],
    given: usize,
    shown: usize,
    always: bool,
}

static mut MACHINE: Machine = Machine {
    script: [0; 384 << 10],
    pc: 0,
    buffer: [0; ROOM],
    texts: [0; (1 << 20) + 16],
    used: 0,
    line: [0; 9000],
    written: 0,
    args: [0; 8],
    given: 0,
    shown: 0,
    always: false,
};

fn machine() -> &'static mut Machine {
    unsafe { &mut *addr_of_mut!(MACHINE) }
}

#[unsafe(no_mangle)]
extern "C" fn wp_abi() -> i32 {
    1 << 16
}

/// The configuration is a JSON string of digits, which are decoded in place.
#[unsafe(no_mangle)]
extern "C" fn wp_configure() -> i32 {
    let m = machine();
    let n = unsafe { host::config(m.script.as_mut_ptr(), m.script.len() as u32) } as usize;
    if n == 0 {
        return 0;
    }
    for i in 0..(n - 2) / 2 {
        m.script[i] = digit(m.script[2 * i + 1]) << 4 | digit(m.script[2 * i + 2]);
    }
    m.run()
}

#[unsafe(no_mangle)]
extern "C" fn wp_hook(hook: i32) -> i32 {
    let m = machine();
    m.number(hook.into());
    m.say();
    m.run()
}

fn digit(c: u8) -> u8 {
    if c < b'a' { c - b'0' } else { c - b'a' + 10 }
}

fn address(byte: *const u8) -> i64 {
    byte as usize as i64
}

impl Machine {
    fn next(&mut self) -> u8 {
        self.pc += 1;
        self.script[self.pc - 1]
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.next()))
    }

    fn push(&mut self, v: i64) {
        self.args[self.given] = v;
        self.given += 1;
    }

    /// Takes one argument of the script for the next call.
    fn read(&mut self) {
        match self.next() {
            0 => {
                let low = self.word();
                let high = self.word();
                self.push((u64::from(high) << 32 | u64::from(low)) as i64);
            }
            1 => {
                let n = self.word();
                self.push(address(addr_of!(self.script[self.pc])));
                self.push(n.into());
                self.pc += n as usize;
            }
            2 => {
                let n = self.word();
                let c = self.next();
                self.texts[self.used..][..n as usize].fill(c);
                self.push(address(addr_of!(self.texts[self.used])));
                self.push(n.into());
                self.used += n as usize;
            }
            3 => {
                let n = self.word();
                self.room(n);
                self.push(n.into());
            }
            _ => {
                let n = self.word();
                self.room(n);
                self.always = true;
            }
        }
    }

    fn room(&mut self, n: u32) {
        self.shown = n as usize;
        self.buffer[..self.shown].fill(0xaa);
        self.push(address(self.buffer.as_ptr()));
    }

    /// Carries the script out up to its next end, and returns what that says.
    fn run(&mut self) -> i32 {
        loop {
            let op = self.next();
            if op == 0xff {
                return self.word() as i32;
            }
            (self.given, self.used, self.shown, self.always) = (0, 0, 0, false);
            for _ in 0..self.next() {
                self.read();
            }
            self.call(op);
        }
    }

    fn put(&mut self, c: u8) {
        self.line[self.written] = c;
        self.written += 1;
    }

    fn say(&mut self) {
        unsafe { host::log(1, self.line.as_ptr(), self.written as u32) };
        self.written = 0;
    }

    fn number(&mut self, v: i64) {
        if v < 0 {
            self.put(b'-');
        }
        self.digits(v.unsigned_abs());
    }

    fn digits(&mut self, v: u64) {
        if v >= 10 {
            self.digits(v / 10);
        }
        self.put(b'0' + (v % 10) as u8);
    }

    /// Says a result, and what is in the buffer.
    fn tell(&mut self, result: i64) {
        self.number(result);
        if !self.always {
            self.shown = result.clamp(0, self.shown as i64) as usize;
        }
        if self.shown > 0 {
            self.put(b' ');
        }
        for i in 0..self.shown {
            self.put(b"0123456789abcdef"[usize::from(self.buffer[i] >> 4)]);
            self.put(b"0123456789abcdef"[usize::from(self.buffer[i] & 15)]);
        }
        self.say();
    }

    fn i(&self, at: usize) -> i32 {
        self.args[at] as i32
    }

    fn u(&self, at: usize) -> u32 {
        self.args[at] as u32
    }

    fn p(&self, at: usize) -> *mut u8 {
        self.args[at] as usize as *mut u8
    }

    fn call(&mut self, op: u8) {
        unsafe {
            match op {
                0 => self.tell(host::get(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                1 => self.tell(host::get_i64(self.i(0), self.i(1), self.p(2)).into()),
                2 => self.tell(host::map_get(self.i(0), self.i(1), self.p(2), self.u(3), self.p(4), self.u(5)).into()),
                3 => self.tell(host::map_dump(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                4 => self.tell(host::list_dump(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                5 => self.tell(host::cri_raw(self.p(0), self.u(1)).into()),
                6 => self.tell(host::cgroup_get(self.i(0), self.p(1), self.u(2), self.p(3), self.u(4)).into()),
                7 => self.tell(host::pod_find(self.i(0), self.p(1), self.u(2)).into()),
                8 => self.tell(host::pod_list(self.p(0), self.u(1), self.p(2), self.u(3)).into()),
                9 => self.tell(host::container_list(self.i(0), self.p(1), self.u(2)).into()),
                10 => self.tell(host::set_i64(self.i(0), self.i(1), self.args[2]).into()),
                11 => self.tell(host::set_bytes(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                12 => self.tell(host::map_set(self.i(0), self.i(1), self.p(2), self.u(3), self.p(4), self.u(5)).into()),
                13 => self.tell(host::map_del(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                14 => self.tell(host::list_set(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                15 => self.tell(host::list_add(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                16 => self.tell(host::list_del(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                17 => self.tell(host::cgroup_set(self.i(0), self.p(1), self.u(2), self.p(3), self.u(4)).into()),
                18 => self.tell(host::reject(self.i(0), self.p(1), self.u(2)).into()),
                19 => host::fail(self.p(0), self.u(1)),
                20 => host::abort(self.p(0), self.u(1)),
                21 => self.tell(host::config(self.p(0), self.u(1)).into()),
                22 => host::log(self.i(0), self.p(1), self.u(2)),
                23 => self.tell(host::log_level().into()),
                24 => self.tell(host::metric(self.i(0), self.p(1), self.u(2), self.args[3]).into()),
                25 => self.tell(host::kv_get(self.p(0), self.u(1), self.p(2), self.u(3)).into()),
                26 => self.tell(host::kv_set(self.p(0), self.u(1), self.p(2), self.u(3)).into()),
                27 => self.tell(host::kv_del(self.p(0), self.u(1)).into()),
                28 => self.tell(host::now()),
                29 => self.tell(host::random(self.p(0), self.u(1)).into()),
                30 => self.tell(host::feature(self.i(0)).into()),
                31 => self.tell(host::cgroup_read(self.p(0), self.u(1), self.p(2), self.u(3), self.p(4), self.u(5)).into()),
                32 => self.tell(host::withdraw(self.i(0), self.i(1), self.p(2), self.u(3)).into()),
                33 => self.tell(host::conflict(self.p(0), self.u(1)).into()),
                _ => unreachable!(),
            }
        }
    }
}
