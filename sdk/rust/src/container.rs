use crate::abi::{field, object};
use crate::{Device, Mount, Pod, Resources, Result, codec, host, pod, read, store, write};

/// A container. Its methods return "" or 0 for what the container does not have. It is
/// valid while the handler that got it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container(pub(crate) i32);

impl Container {
    pub(crate) const OF_EVENT: Container = Container(object::CONTAINER);

    /// The pod that the container is in.
    pub fn pod(&self) -> Pod {
        if *self == Self::OF_EVENT {
            return Pod::OF_EVENT;
        }
        store::find_pod_by_id(&read::text("pod", self.0, field::CONTAINER_POD_SANDBOX_ID)).unwrap_or(Pod(NOTHING))
    }

    /// What is mounted into it.
    pub fn mounts(&self) -> Vec<Mount> {
        read::list("mounts", self.0, field::CONTAINER_MOUNTS, Mount::decode)
    }

    /// The image that is mounted at a path, as its user wrote it.
    pub fn image_volume(&self, container_path: &str) -> Option<String> {
        read::entry("image_volume", self.0, field::CONTAINER_IMAGE_VOLUMES, container_path)
    }

    /// The images that are mounted, by their paths. An image of which nobody told the name is "".
    pub fn image_volumes(&self) -> Vec<(String, String)> {
        read::entries("image_volumes", self.0, field::CONTAINER_IMAGE_VOLUMES)
    }

    /// The devices it may use.
    pub fn devices(&self) -> Vec<Device> {
        read::list("devices", self.0, field::CONTAINER_DEVICES, Device::decode)
    }

    /// The names of its CDI devices.
    pub fn cdi_devices(&self) -> Vec<String> {
        read::texts("cdi_devices", self.0, field::CONTAINER_CDI_DEVICES)
    }

    /// The user id that it runs as, `None` unless the request says.
    pub fn run_as_user(&self) -> Option<i64> {
        read::said("run_as_user", self.0, field::CONTAINER_RUN_AS_USER)
    }

    /// The group id that it runs as, `None` unless the request says.
    pub fn run_as_group(&self) -> Option<i64> {
        read::said("run_as_group", self.0, field::CONTAINER_RUN_AS_GROUP)
    }

    /// The groups that it has besides its own.
    pub fn supplemental_groups(&self) -> Vec<i64> {
        let groups = read::texts("supplemental_groups", self.0, field::CONTAINER_SUPPLEMENTAL_GROUPS);
        groups.iter().filter_map(|g| g.parse().ok()).collect()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<String> {
        read::entry("label", self.0, field::CONTAINER_LABELS, key)
    }

    /// The labels, sorted by key.
    pub fn labels(&self) -> Vec<(String, String)> {
        read::entries("labels", self.0, field::CONTAINER_LABELS)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        read::entry("annotation", self.0, field::CONTAINER_ANNOTATIONS, key)
    }

    /// The annotations, sorted by key.
    pub fn annotations(&self) -> Vec<(String, String)> {
        read::entries("annotations", self.0, field::CONTAINER_ANNOTATIONS)
    }

    /// The value of an environment variable, the last where a name occurs twice. It may be
    /// a secret: do not log it. It needs [`Capability::Env`](crate::Capability::Env).
    pub fn env(&self, name: &str) -> Result<Option<Vec<u8>>> {
        read::bytes("env", name, |buf| host::map_get(self.0, field::CONTAINER_ENV, name, buf))
    }

    /// The environment in the order of the request, which may repeat a name; as with
    /// [`Container::env`].
    pub fn envs(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let dump = read::bytes("envs", "", |buf| host::map_dump(self.0, field::CONTAINER_ENV, buf))?;
        let dump = dump.unwrap_or_default();
        Ok(codec::entries(&dump).map(|(k, v)| (codec::text(k), v.to_vec())).collect())
    }

    /// The container's resources.
    pub fn resources(&self) -> Resources {
        Resources { object: self.0, base: field::RESOURCES }
    }

    /// A file of the container's cgroup by its cgroup v2 name, such as `memory.pressure`.
    /// It needs [`Capability::CgroupRead`](crate::Capability::CgroupRead).
    pub fn read_cgroup(&self, file: &str) -> Result<String> {
        pod::cgroup(self.0, file)
    }

    /// Takes back what the plugin has set of a field, such as
    /// [`CONTAINER_DEVICES`](crate::abi::field::CONTAINER_DEVICES), and of which entry or element, by its key; the key is ""
    /// for fields that have none. A resource is `RESOURCES + CPU_QUOTA`. What was set in this call is as if it had not been set.
    /// A resource that the plugin holds from an earlier event goes back to kubelet's value. Others may set it then. It
    /// is no error if there is nothing to take back.
    pub fn withdraw(&self, field: i32, key: &str) -> Result {
        write::withdraw("withdraw", self.0, field, key)
    }

    /// Takes back what the plugin has asked for of a file of the container's cgroup, in this call or an earlier one.
    pub fn withdraw_cgroup(&self, file: &str) -> Result {
        write::withdraw("withdraw_cgroup", self.0, 0, file)
    }
}

/// An object that the host does not know, so that every field of it is absent.
pub(crate) const NOTHING: i32 = -1;

#[cfg(test)]
mod tests {
    use crate::abi::field::{CONTAINER_DEVICES, CPU_SHARES, POD_CGROUP_PARENT, RESOURCES};
    use crate::{Device, Errno, PreCreateContainer, PreUpdateContainerResources, Result, conflict_with};

    crate::plugin! {
        name: "fickle",
        version: "1",
        needs: [Devices, Resources, CgroupWrite, CgroupParent],
        on PreCreateContainer(create),
        on PreUpdateContainerResources(update),
    }

    fn create(c: &PreCreateContainer) -> Result {
        c.add_device(&Device { container_path: "/dev/a".into(), host_path: "/dev/a".into(), permissions: "r".into() })?;
        c.set_cgroup_parent("/kubepods/p")?;
        c.withdraw(CONTAINER_DEVICES, "/dev/a")?;
        c.pod().withdraw(POD_CGROUP_PARENT, "")?;
        c.set_cgroup("cpu.idle", "1")?;
        assert_eq!(conflict_with(), None);
        if c.resources().set_cpu_shares(2).is_err_and(|e| e.handled(Errno::Conflict)) {
            assert_eq!(conflict_with().as_deref(), Some("earlier"));
        }
        assert!(c.withdraw(CONTAINER_DEVICES, "").is_err_and(|e| e.handled(Errno::Invalid)));
        assert!(c.pod().withdraw_cgroup("cpu.idle").is_err_and(|e| e.handled(Errno::ReadOnly)));
        Ok(())
    }

    fn update(c: &PreUpdateContainerResources) -> Result {
        c.withdraw(RESOURCES + CPU_SHARES, "")?;
        c.withdraw_cgroup("cpu.idle")
    }

    /// What is withdrawn in the same call leaves nothing; what an earlier event has set is withdrawn once.
    #[test]
    fn withdrawn() {
        crate::test::run(
            &PLUGIN,
            r#"[
                {"hook": "PreCreateContainer", "cgroup": "v2", "grant": ["*"], "pod": {"id": "p", "cgroup_parent": "/kubepods"}, "container": {"id": "c"},
                 "want": {"changes": {"container.resources.cpu_shares": 2, "container cgroup file cpu.idle": "1"}}},
                {"hook": "PreUpdateContainerResources", "continues": true,
                 "want": {"changes": {"container.resources.cpu_shares": false, "container cgroup file cpu.idle": false}}},
                {"continues": true, "want": {"changes": {}}},
                {"hook": "PreCreateContainer", "cgroup": "v2", "grant": ["*"], "pod": {"id": "p", "cgroup_parent": "/kubepods"}, "container": {"id": "c"},
                 "earlier": {"container.resources.cpu_shares": 5}, "want": {"changes": {"container cgroup file cpu.idle": "1"}}}
            ]"#,
        );
    }
}
