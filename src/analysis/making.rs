//! How a member of a panel was made, in a line.

use crate::experiment::plan::MemberPlan;

/// Weights, numbers, thinking.
pub fn member(member: &MemberPlan) -> String {
    let backbone = &member.backbone;
    let thinking = match member.thinking {
        Some(true) => "on",
        Some(false) => "off",
        None => "as it has it",
    };
    if member.is_remote() {
        return format!("{backbone}, a remote endpoint, thinking {thinking}");
    }
    format!(
        "{backbone} ({}, weights sha256 {}…), {}, quantisation {}, thinking {thinking}",
        member.revision.as_deref().unwrap_or("no revision"),
        member.weights_sha256.get(..12).unwrap_or_default(),
        member.dtype,
        member.quantisation,
    )
}
