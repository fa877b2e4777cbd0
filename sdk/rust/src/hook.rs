//! The events, one type for each hook. A type has the methods that its hook allows; what a
//! hook cannot change does not compile:
//!
//! ```compile_fail,E0599
//! use wasmproxy::{PostStartContainer, Result};
//!
//! fn too_late(c: &PostStartContainer) -> Result {
//!     c.resources().set_cpu_quota(50_000) // no method `set_cpu_quota`
//! }
//! ```

#[macro_use]
mod methods;

use std::ops::Deref;

use crate::abi::{field, object};
use crate::{Container, Device, Hook, Mount, Pod, Resources, ResourcesMut, Result, error, read, write};

/// The event of a hook. Only the types of this crate are.
pub trait Event: sealed::Sealed {
    /// The hook.
    const HOOK: Hook;

    #[doc(hidden)]
    const CURRENT: Self;
}

mod sealed {
    pub trait Sealed {}
}

/// The gRPC code that the caller of a refused call sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The request is wrong.
    InvalidArgument = 3,
    /// The caller may not.
    PermissionDenied = 7,
    /// Something is used up.
    ResourceExhausted = 8,
    /// The node is not in a state for it.
    FailedPrecondition = 9,
}

/// Resources and cgroup files of a container other than the event's. They are changed when
/// the call has succeeded; it needs [`Capability::UpdateOthers`](crate::Capability::UpdateOthers).
#[derive(Clone, Copy, Debug)]
pub struct ContainerUpdate(i32);

impl ContainerUpdate {
    /// The container's resources.
    pub fn resources(&self) -> ResourcesMut {
        ResourcesMut(Resources { object: self.0, base: field::RESOURCES })
    }

    /// Asks for a file of the container's cgroup, by its cgroup v2 name: one of those in the table
    /// "Cgroup files" of ABI.md.
    pub fn set_cgroup(&self, file: &str, value: &str) -> Result {
        write::cgroup(self.0, file, value)
    }
}

/// Cgroup files of a pod other than the event's, as with [`ContainerUpdate`].
#[derive(Clone, Copy, Debug)]
pub struct PodUpdate(i32);

impl PodUpdate {
    /// Asks for a file of the pod's cgroup, by its cgroup v2 name: one of those in the table
    /// "Cgroup files" of ABI.md.
    pub fn set_cgroup(&self, file: &str, value: &str) -> Result {
        write::cgroup(self.0, file, value)
    }
}

/// Defines an event: what it is about, if anything, and what it may do.
macro_rules! events {
    ($($(#[$doc:meta])* $event:ident $(: $target:ident)? { $($method:ident)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $event(());

        impl sealed::Sealed for $event {}

        impl Event for $event {
            const HOOK: Hook = Hook::$event;
            const CURRENT: $event = $event(());
        }

        $(
            impl Deref for $event {
                type Target = $target;

                fn deref(&self) -> &$target {
                    &$target::OF_EVENT
                }
            }
        )?

        $(methods!($event $method);)*
    )*};
}

events! {
    /// Before a pod sandbox is made. kubelet has made the pod's cgroup by then.
    PreRunPodSandbox: Pod { reject others pod_files labels pod_annotations cgroup_parent runtime_handler }
    /// After a pod sandbox was made.
    PostRunPodSandbox: Pod { others pod_files }
    /// Before a container is created.
    PreCreateContainer: Container { reject others container_files annotations resources cgroup_parent env image args mounts devices user }
    /// After a container was created.
    PostCreateContainer: Container { others container_files }
    /// Before a container is started.
    PreStartContainer: Container { reject others container_files }
    /// After a container was started.
    PostStartContainer: Container { others container_files }
    /// Before a container's resources are changed. Getters show what the container has,
    /// with the request laid over it; what is set goes into the request.
    PreUpdateContainerResources: Container { reject others container_files annotations resources }
    /// After a container's resources were changed.
    PostUpdateContainerResources: Container { others container_files }
    /// After a container was stopped.
    PostStopContainer: Container { others timeout }
    /// After a container was removed.
    PostRemoveContainer: Container { others }
    /// After a pod sandbox was stopped.
    PostStopPodSandbox: Pod { others }
    /// Before a container is stopped, which cannot be refused.
    PreStopContainer: Container { timeout }
    /// Before a container is removed, which cannot be refused.
    PreRemoveContainer: Container {}
    /// Before a pod sandbox is stopped, which cannot be refused.
    PreStopPodSandbox: Pod {}
    /// Before a pod sandbox is removed, which cannot be refused.
    PreRemovePodSandbox: Pod {}
    /// After a pod sandbox was removed.
    PostRemovePodSandbox: Pod { others }
    /// Before the resources of a pod sandbox are changed.
    PreUpdatePodSandboxResources: Pod { reject others pod_resources }
    /// After the resources of a pod sandbox were changed.
    PostUpdatePodSandboxResources: Pod { others }
    /// Before the caller gets a URL to run a command in a container.
    PreExec: Container { reject others exec_command streams }
    /// After the caller got a URL to run a command in a container.
    PostExec: Container { others exec_command streams }
    /// Before a command is run in a container, such as a probe.
    PreExecSync: Container { reject others exec_command timeout }
    /// After a command was run in a container.
    PostExecSync: Container { others exec_command timeout exit_code }
    /// Before the caller gets a URL to attach to a container.
    PreAttach: Container { reject others streams }
    /// After the caller got a URL to attach to a container.
    PostAttach: Container { others streams }
    /// Before the caller gets a URL to forward ports of a pod.
    PrePortForward: Pod { reject others ports }
    /// After the caller got a URL to forward ports of a pod.
    PostPortForward: Pod { others ports }
    /// Before a checkpoint of a container is taken.
    PreCheckpointContainer: Container { reject others location timeout }
    /// After a checkpoint of a container was taken.
    PostCheckpointContainer: Container { others location timeout }
    /// Before a checkpoint of a pod is taken.
    PreCheckpointPod: Pod { reject others location }
    /// After a checkpoint of a pod was taken.
    PostCheckpointPod: Pod { others location }
    /// Before a pod is restored from a checkpoint.
    PreRestorePod: Pod { reject others location }
    /// After a pod was restored from a checkpoint.
    PostRestorePod: Pod { others location }
    /// Before an image is pulled.
    PrePullImage { reject others pulled_image set_pulled_image pulling_pod }
    /// After an image was pulled.
    PostPullImage { others pulled_image image_ref pulling_pod }
    /// Before an image is removed.
    PreRemoveImage { reject others pulled_image }
    /// After an image was removed.
    PostRemoveImage { others pulled_image }
    /// A pod that is older than the plugin's place in the chain, or has a container that is, before
    /// any other event of these. After a change of the plugin's files it comes for all pods.
    Synchronize: Pod { others pod_files }
    /// Comes at the period that the plugin asks for with `tick_ms`, one at a time.
    Tick { others }
}
