//! What events may do, each thing by a name that the list of events uses.

/// The methods of an event that are one thing that a hook may do.
macro_rules! methods {
    ($event:ident reject) => {
        impl $event {
            /// Refuses the call, whatever the failure policy: the caller gets the code and
            /// the reason. What it returns is for the handler to return.
            pub fn reject(&self, code: Code, reason: &str) -> Result {
                error::reject(code as i32, reason)
            }
        }
    };
    ($event:ident others) => {
        impl $event {
            /// Changes a container other than the event's, once the call has succeeded.
            pub fn update(&self, container: Container) -> ContainerUpdate {
                ContainerUpdate(container.0)
            }

            /// Changes a pod other than the event's, once the call has succeeded.
            pub fn update_pod(&self, pod: Pod) -> PodUpdate {
                PodUpdate(pod.0)
            }
        }
    };
    ($event:ident pod_files) => {
        impl $event {
            /// Asks for a file of the pod's cgroup, by its
            /// cgroup v2 name.
            pub fn set_cgroup(&self, file: &str, value: &str) -> Result {
                write::cgroup(object::POD, file, value)
            }
        }
    };
    ($event:ident container_files) => {
        impl $event {
            /// Asks for a file of the container's cgroup, such as
            /// `cpu.idle`, by its cgroup v2 name. It is written when the container runs.
            pub fn set_cgroup(&self, file: &str, value: &str) -> Result {
                write::cgroup(object::CONTAINER, file, value)
            }
        }
    };
    ($event:ident labels) => {
        impl $event {
            /// Sets a label of the pod. Keys under io.kubernetes. are denied.
            pub fn set_label(&self, key: &str, value: &str) -> Result {
                write::entry("set_label", object::POD, field::POD_LABELS, key, value)
            }

            /// Removes a label of the pod, if it is there.
            pub fn delete_label(&self, key: &str) -> Result {
                write::delete_entry("delete_label", object::POD, field::POD_LABELS, key)
            }
        }
    };
    ($event:ident pod_annotations) => {
        impl $event {
            /// Sets an annotation of the pod. Keys under io.kubernetes. are denied.
            pub fn set_annotation(&self, key: &str, value: &str) -> Result {
                write::entry("set_annotation", object::POD, field::POD_ANNOTATIONS, key, value)
            }

            /// Removes an annotation of the pod, if it is there.
            pub fn delete_annotation(&self, key: &str) -> Result {
                write::delete_entry("delete_annotation", object::POD, field::POD_ANNOTATIONS, key)
            }
        }
    };
    ($event:ident annotations) => {
        impl $event {
            /// Sets an annotation of the container. Keys under io.kubernetes. are denied.
            pub fn set_annotation(&self, key: &str, value: &str) -> Result {
                write::entry("set_annotation", object::CONTAINER, field::CONTAINER_ANNOTATIONS, key, value)
            }

            /// Removes an annotation of the container, if it is there.
            pub fn delete_annotation(&self, key: &str) -> Result {
                write::delete_entry("delete_annotation", object::CONTAINER, field::CONTAINER_ANNOTATIONS, key)
            }
        }
    };
    ($event:ident cgroup_parent) => {
        impl $event {
            /// Sets the cgroup that the pod's or container's is made in: an absolute path, or
            /// a systemd slice. It needs [`Capability::CgroupParent`](crate::Capability::CgroupParent).
            pub fn set_cgroup_parent(&self, parent: &str) -> Result {
                write::text("set_cgroup_parent", object::POD, field::POD_CGROUP_PARENT, parent)
            }
        }
    };
    ($event:ident runtime_handler) => {
        impl $event {
            /// Sets the runtime handler of the pod. It needs
            /// [`Capability::RuntimeHandler`](crate::Capability::RuntimeHandler).
            pub fn set_runtime_handler(&self, handler: &str) -> Result {
                write::text("set_runtime_handler", object::POD, field::POD_RUNTIME_HANDLER, handler)
            }
        }
    };
    ($event:ident resources) => {
        impl $event {
            /// The container's resources, as they will be when the request is carried out.
            pub fn resources(&self) -> ResourcesMut {
                ResourcesMut(self.deref().resources())
            }
        }
    };
    ($event:ident pod_resources) => {
        impl $event {
            /// The sum of the resources of the pod's containers, as the request has it.
            pub fn resources(&self) -> ResourcesMut {
                ResourcesMut(self.deref().resources())
            }

            /// What the pod's sandbox itself costs, as the request has it.
            pub fn overhead(&self) -> ResourcesMut {
                ResourcesMut(self.deref().overhead())
            }
        }
    };
    ($event:ident env) => {
        impl $event {
            /// Sets an environment variable. It replaces the last occurrence of the name and
            /// drops earlier ones; a new name comes last. It needs
            /// [`Capability::Env`](crate::Capability::Env).
            pub fn set_env(&self, name: &str, value: impl AsRef<[u8]>) -> Result {
                write::entry("set_env", object::CONTAINER, field::CONTAINER_ENV, name, value)
            }

            /// Removes an environment variable, if it is there; as with `set_env`.
            pub fn delete_env(&self, name: &str) -> Result {
                write::delete_entry("delete_env", object::CONTAINER, field::CONTAINER_ENV, name)
            }
        }
    };
    ($event:ident image) => {
        impl $event {
            /// Sets the image. It needs [`Capability::Image`](crate::Capability::Image).
            pub fn set_image(&self, image: &str) -> Result {
                write::text("set_image", object::CONTAINER, field::CONTAINER_IMAGE, image)
            }
        }
    };
    ($event:ident args) => {
        /// These need [`Capability::Args`](crate::Capability::Args).
        impl $event {
            /// Sets what is run instead of the image's entrypoint.
            pub fn set_command(&self, command: &[impl AsRef<str>]) -> Result {
                write::list("set_command", object::CONTAINER, field::CONTAINER_COMMAND, command)
            }

            /// Sets the arguments of the command.
            pub fn set_args(&self, args: &[impl AsRef<str>]) -> Result {
                write::list("set_args", object::CONTAINER, field::CONTAINER_ARGS, args)
            }

            /// Sets the working directory.
            pub fn set_working_dir(&self, directory: &str) -> Result {
                write::text("set_working_dir", object::CONTAINER, field::CONTAINER_WORKING_DIR, directory)
            }
        }
    };
    ($event:ident mounts) => {
        /// These need [`Capability::Mounts`](crate::Capability::Mounts).
        impl $event {
            /// Adds a mount, in place of the one at the same path of the container.
            pub fn add_mount(&self, mount: &Mount) -> Result {
                let (key, element) = (&mount.container_path, mount.encode());
                write::element("add_mount", object::CONTAINER, field::CONTAINER_MOUNTS, key, &element)
            }

            /// Removes the mount at a path of the container, if it is there.
            pub fn delete_mount(&self, container_path: &str) -> Result {
                write::delete_element("delete_mount", object::CONTAINER, field::CONTAINER_MOUNTS, container_path)
            }
        }
    };
    ($event:ident devices) => {
        /// These need [`Capability::Devices`](crate::Capability::Devices), those of CDI
        /// [`Capability::Cdi`](crate::Capability::Cdi).
        impl $event {
            /// Adds a device, in place of the one at the same path of the container.
            pub fn add_device(&self, device: &Device) -> Result {
                let (key, element) = (&device.container_path, device.encode());
                write::element("add_device", object::CONTAINER, field::CONTAINER_DEVICES, key, &element)
            }

            /// Removes the device at a path of the container, if it is there.
            pub fn delete_device(&self, container_path: &str) -> Result {
                write::delete_element("delete_device", object::CONTAINER, field::CONTAINER_DEVICES, container_path)
            }

            /// Adds a CDI device by its name.
            pub fn add_cdi_device(&self, name: &str) -> Result {
                write::element("add_cdi_device", object::CONTAINER, field::CONTAINER_CDI_DEVICES, name, name.as_bytes())
            }

            /// Removes a CDI device, if it is there.
            pub fn delete_cdi_device(&self, name: &str) -> Result {
                write::delete_element("delete_cdi_device", object::CONTAINER, field::CONTAINER_CDI_DEVICES, name)
            }
        }
    };
    ($event:ident user) => {
        /// These need [`Capability::User`](crate::Capability::User).
        impl $event {
            /// Sets the user id that the container runs as.
            pub fn set_run_as_user(&self, uid: i64) -> Result {
                write::number("set_run_as_user", object::CONTAINER, field::CONTAINER_RUN_AS_USER, uid)
            }

            /// Sets the group id that the container runs as.
            pub fn set_run_as_group(&self, gid: i64) -> Result {
                write::number("set_run_as_group", object::CONTAINER, field::CONTAINER_RUN_AS_GROUP, gid)
            }

            /// Sets the user name that the container runs as.
            pub fn set_run_as_username(&self, name: &str) -> Result {
                write::text("set_run_as_username", object::CONTAINER, field::CONTAINER_RUN_AS_USERNAME, name)
            }

            /// Adds a group.
            pub fn add_supplemental_group(&self, gid: i64) -> Result {
                let (op, gid) = ("add_supplemental_group", gid.to_string());
                write::element(op, object::CONTAINER, field::CONTAINER_SUPPLEMENTAL_GROUPS, &gid, gid.as_bytes())
            }

            /// Removes a group, if it is there.
            pub fn delete_supplemental_group(&self, gid: i64) -> Result {
                let (op, gid) = ("delete_supplemental_group", gid.to_string());
                write::delete_element(op, object::CONTAINER, field::CONTAINER_SUPPLEMENTAL_GROUPS, &gid)
            }
        }
    };
    ($event:ident set_pulled_image) => {
        impl $event {
            /// Sets the image that is pulled. It needs [`Capability::Image`](crate::Capability::Image).
            pub fn set_image(&self, image: &str) -> Result {
                write::text("set_image", object::EVENT, field::EVENT_IMAGE, image)
            }

            /// Takes back what the plugin has set of the image in this call.
            pub fn withdraw_image(&self) -> Result {
                write::withdraw("withdraw_image", object::EVENT, field::EVENT_IMAGE, "")
            }
        }
    };
    ($event:ident exec_command) => {
        impl $event {
            /// What is run in the container.
            pub fn exec_command(&self) -> Vec<String> {
                read::texts("exec_command", object::EVENT, field::EVENT_COMMAND)
            }
        }
    };
    ($event:ident streams) => {
        impl $event {
            /// Whether the caller wants a terminal.
            pub fn tty(&self) -> bool {
                read::number("tty", object::EVENT, field::EVENT_TTY) == 1
            }

            /// Whether the caller wants to write to standard input.
            pub fn stdin(&self) -> bool {
                read::number("stdin", object::EVENT, field::EVENT_STDIN) == 1
            }
        }
    };
    ($event:ident timeout) => {
        impl $event {
            /// The request's timeout in seconds, 0 if it has none.
            pub fn timeout(&self) -> i64 {
                read::number("timeout", object::EVENT, field::EVENT_TIMEOUT)
            }
        }
    };
    ($event:ident exit_code) => {
        impl $event {
            /// The exit code of the command.
            pub fn exit_code(&self) -> i64 {
                read::number("exit_code", object::EVENT, field::EVENT_EXIT_CODE)
            }
        }
    };
    ($event:ident ports) => {
        impl $event {
            /// The ports of the pod that are forwarded.
            pub fn ports(&self) -> Vec<u16> {
                let ports = read::texts("ports", object::EVENT, field::EVENT_PORTS);
                ports.iter().filter_map(|p| p.parse().ok()).collect()
            }
        }
    };
    ($event:ident location) => {
        impl $event {
            /// Where the archive is.
            pub fn location(&self) -> String {
                read::text("location", object::EVENT, field::EVENT_LOCATION)
            }
        }
    };
    ($event:ident pulled_image) => {
        impl $event {
            /// The image as the request names it.
            pub fn image(&self) -> String {
                read::text("image", object::EVENT, field::EVENT_IMAGE)
            }
        }
    };
    ($event:ident image_ref) => {
        impl $event {
            /// What the runtime calls the image that it pulled.
            pub fn image_ref(&self) -> String {
                read::text("image_ref", object::EVENT, field::EVENT_IMAGE_REF)
            }
        }
    };
    ($event:ident pulling_pod) => {
        impl $event {
            /// The pod that the image is pulled for, if the request says; else its fields
            /// are empty.
            pub fn pod(&self) -> Pod {
                Pod::OF_EVENT
            }
        }
    };
}
