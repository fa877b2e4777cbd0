package main

// rustHookTable is the head of the table of hooks, with its length.
const rustHookTable = `
/// When a hook's plugins are asked, and what they may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The call is forwarded afterwards: it can be changed and refused.
    Before,
    /// Before as well, but the call cannot be refused.
    Leaving,
    /// The runtime has answered OK.
    After,
    /// Apart from any call.
    Apart,
}

/// A row of the table of hooks.
pub struct HookInfo {
    /// The hook.
    pub hook: Hook,
    /// Its name.
    pub name: &'static str,
    /// When it is asked.
    pub asked: Asked,
    /// What it is about: 1 a pod, 2 a container, 0 neither.
    pub object: i32,
}

/// The hooks, in the order of their numbers.
#[rustfmt::skip]
pub static HOOKS: [HookInfo; %d] = [
`

// rustFieldTable is the head of the table of fields, with its length.
const rustFieldTable = `
/// Says which getters and setters a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Int64,
    /// A text.
    String,
    /// Texts by their keys.
    Map,
    /// Texts in an order.
    List,
    /// Elements with a key each.
    Set,
}

/// A row of the table of fields.
pub struct FieldInfo {
    /// The object's number.
    pub object: i32,
    /// The field's number.
    pub field: i32,
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The hooks in which it can be set, one bit each.
    pub writable: u64,
    /// What setting it needs.
    pub writing: Option<Capability>,
    /// What reading it needs.
    pub reading: Option<Capability>,
    /// Whether it can be set on a handle.
    pub handle: bool,
}

/// The table of fields.
#[rustfmt::skip]
pub static FIELDS: [FieldInfo; %d] = [
`
