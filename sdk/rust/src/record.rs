use crate::codec;

/// How mounts made on one side appear on the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They do not.
    #[default]
    Private,
    /// Those of the host appear in the container.
    HostToContainer,
    /// Both ways.
    Bidirectional,
}

impl Propagation {
    fn name(self) -> &'static str {
        match self {
            Propagation::Private => "private",
            Propagation::HostToContainer => "host_to_container",
            Propagation::Bidirectional => "bidirectional",
        }
    }
}

/// A mount of a container. It goes by its `container_path`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Where in the container; absolute.
    pub container_path: String,
    /// What of the host; absolute.
    pub host_path: String,
    /// Whether the container cannot write to it.
    pub readonly: bool,
    /// How mounts beneath it appear.
    pub propagation: Propagation,
    /// Whether the runtime shall relabel it for SELinux.
    pub selinux_relabel: bool,
    /// Whether what is mounted beneath it is read-only too.
    pub recursive_read_only: bool,
}

impl Mount {
    pub(crate) fn decode(element: &[u8]) -> Mount {
        let mut m = Mount::default();
        for (key, value) in codec::entries(element) {
            match key {
                b"container_path" => m.container_path = codec::text(value),
                b"host_path" => m.host_path = codec::text(value),
                b"readonly" => m.readonly = value == b"true",
                b"propagation" if value == b"host_to_container" => m.propagation = Propagation::HostToContainer,
                b"propagation" if value == b"bidirectional" => m.propagation = Propagation::Bidirectional,
                b"selinux_relabel" => m.selinux_relabel = value == b"true",
                b"recursive_read_only" => m.recursive_read_only = value == b"true",
                _ => {}
            }
        }
        m
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        codec::record(&[
            ("container_path", &self.container_path),
            ("host_path", &self.host_path),
            ("readonly", truth(self.readonly)),
            ("propagation", self.propagation.name()),
            ("selinux_relabel", truth(self.selinux_relabel)),
            ("recursive_read_only", truth(self.recursive_read_only)),
        ])
    }
}

/// A device of a container. It goes by its `container_path`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Where in the container; absolute.
    pub container_path: String,
    /// Which of the host; absolute.
    pub host_path: String,
    /// Any of r, w and m: to read, to write, to make nodes.
    pub permissions: String,
}

impl Device {
    pub(crate) fn decode(element: &[u8]) -> Device {
        let mut d = Device::default();
        for (key, value) in codec::entries(element) {
            match key {
                b"container_path" => d.container_path = codec::text(value),
                b"host_path" => d.host_path = codec::text(value),
                b"permissions" => d.permissions = codec::text(value),
                _ => {}
            }
        }
        d
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        codec::record(&[
            ("container_path", &self.container_path),
            ("host_path", &self.host_path),
            ("permissions", &self.permissions),
        ])
    }
}

fn truth(b: bool) -> &'static str {
    if b { "true" } else { "" }
}
