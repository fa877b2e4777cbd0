//! Finding other pods and containers. All of it needs
//! [`Capability::StoreRead`](crate::Capability::StoreRead).

use crate::error::found;
use crate::{Container, Pod, host, read};

const BY_POD_ID: i32 = 0;
const BY_POD_UID: i32 = 1;
const BY_POD_NAME: i32 = 2;
const BY_CONTAINER_ID: i32 = 3;

fn find(op: &str, kind: i32, name: &str) -> Option<i32> {
    found(op, name, host::pod_find(kind, name)).ok().flatten()
}

impl Pod {
    /// Finds the newest sandbox of a pod by its namespace and name.
    pub fn by_name(namespace: &str, name: &str) -> Option<Pod> {
        find("by_name", BY_POD_NAME, &[namespace, name].join("/")).map(Pod)
    }

    /// Finds a pod by the id of its sandbox.
    pub fn by_id(id: &str) -> Option<Pod> {
        find("by_id", BY_POD_ID, id).map(Pod)
    }

    /// Finds the newest sandbox of a pod by the pod's uid.
    pub fn by_uid(uid: &str) -> Option<Pod> {
        find("by_uid", BY_POD_UID, uid).map(Pod)
    }

    /// The pods of a namespace that the proxy knows, sorted by id; of all for "".
    pub fn list(namespace: &str) -> Vec<Pod> {
        read::handles("list", |buf| host::pod_list(namespace, buf)).into_iter().map(Pod).collect()
    }
}

impl Container {
    /// Finds a container by its id.
    pub fn by_id(id: &str) -> Option<Container> {
        find("by_id", BY_CONTAINER_ID, id).map(Container)
    }
}
