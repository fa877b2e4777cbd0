//! Finding other pods and containers. All of it needs
//! [`Capability::StoreRead`](crate::Capability::StoreRead), and finds what the operator's match accepts, or all with
//! [`Capability::StoreReadAll`](crate::Capability::StoreReadAll).

use crate::abi::object;
use crate::error::{Result, errno, found, refused};
use crate::{Container, Errno, Pod, codec, host, read};

const BY_POD_ID: i32 = 0;
const BY_POD_UID: i32 = 1;
const BY_POD_NAME: i32 = 2;
const BY_CONTAINER_ID: i32 = 3;

fn find(op: &str, kind: i32, name: &str) -> Option<i32> {
    found(op, name, host::pod_find(kind, name)).ok().flatten()
}

/// Finds the newest sandbox of a pod by its namespace and name.
pub fn find_pod(namespace: &str, name: &str) -> Option<Pod> {
    find("find_pod", BY_POD_NAME, &[namespace, name].join("/")).map(Pod)
}

/// Finds a pod by the id of its sandbox.
pub fn find_pod_by_id(id: &str) -> Option<Pod> {
    find("find_pod_by_id", BY_POD_ID, id).map(Pod)
}

/// Finds the newest sandbox of a pod by the pod's uid.
pub fn find_pod_by_uid(uid: &str) -> Option<Pod> {
    find("find_pod_by_uid", BY_POD_UID, uid).map(Pod)
}

/// Finds a container by its id.
pub fn find_container(id: &str) -> Option<Container> {
    find("find_container", BY_CONTAINER_ID, id).map(Container)
}

/// The pods of a namespace that the proxy knows, sorted by id; of all for "".
pub fn pods(namespace: &str) -> Vec<Pod> {
    read::handles("pods", |buf| host::pod_list(namespace, buf)).into_iter().map(Pod).collect()
}

/// All containers that the proxy knows, by pod.
pub fn containers() -> Vec<Container> {
    read::handles("containers", |buf| host::container_list(object::NODE, buf)).into_iter().map(Container).collect()
}

/// What [`read_cgroups`] has read of a file: its text, or why there is none.
pub type File = core::result::Result<String, Errno>;

/// How many files one call of the host reads. The host reads 1,024 at most.
const FILES_PER_CALL: usize = 512;

/// Reads files of many containers, by their cgroup v2 names, with few calls of the host:
/// a row for each container, with the files in their order. Where they are too large for one
/// call, it reads fewer containers at once. It needs
/// [`Capability::CgroupRead`](crate::Capability::CgroupRead).
pub fn read_cgroups(of: &[Container], files: &[&str]) -> Result<Vec<Vec<File>>> {
    let list = codec::list(files);
    let mut rows = Vec::with_capacity(of.len());
    let mut step = (FILES_PER_CALL / files.len().max(1)).max(1);
    let mut rest = of;
    while !rest.is_empty() {
        let (some, others) = rest.split_at(step.min(rest.len()));
        let objects: Vec<u8> = some.iter().flat_map(|c| c.0.to_le_bytes()).collect();
        let dump = match read::fill(|buf| host::cgroup_read(&objects, &list, buf)) {
            Err(n) if n == Errno::TooLarge as i32 && some.len() > 1 => {
                step = some.len() / 2;
                continue;
            }
            dump => dump.map_err(|n| refused("read_cgroups", "", n, false))?,
        };
        let read: Vec<File> = codec::entries(&dump).map(|(errno, text)| one(errno, text)).collect();
        rows.extend(read.chunks(files.len().max(1)).map(<[File]>::to_vec));
        rest = others;
    }
    Ok(rows)
}

fn one(error: &[u8], text: &[u8]) -> File {
    match codec::text(error).parse() {
        Ok(n) => Err(errno(n)),
        Err(_) => Ok(codec::text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tick;

    crate::plugin! {
        name: "survey",
        version: "1",
        tick_ms: 1000,
        needs: [StoreRead, CgroupRead],
        on Tick(survey),
    }

    fn survey(_: &Tick) -> Result {
        let all = containers();
        let rows = read_cgroups(&all, &["memory.stat", "none"])?;
        assert_eq!(rows.len(), all.len());
        for row in rows {
            assert_eq!(row[0].as_ref().map(String::len), Ok(60_000));
            assert!(row[1].is_err());
        }
        Ok(())
    }

    /// Files that are together too large for one call of the host are read with more calls.
    #[test]
    fn large_files() {
        let ids: Vec<_> = (0..50).map(|i| format!("c{i}")).collect();
        let containers: Vec<_> = ids.iter().map(|id| format!(r#"{{"id": "{id}"}}"#)).collect();
        let text = "x".repeat(60_000);
        let files: Vec<_> = ids.iter().map(|id| format!(r#""{id}": {{"memory.stat": "{text}"}}"#)).collect();
        let case = format!(
            r#"{{"hook": "Tick", "cgroup": "v2", "grant": ["*"], "store": [{{"pod": {{"id": "p"}}, "containers": [{}]}}], "cgroup_files": {{{}}}}}"#,
            containers.join(","),
            files.join(",")
        );
        assert_eq!(crate::test::call(&PLUGIN, &case).error, None);
    }
}
