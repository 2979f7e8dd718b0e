/** Whether somebody must agree to a call, why, and to what exactly. */
import type { Sha256 } from "../contract/Digest.ts"
import { canonical } from "../contract/Json.ts"
import type { ToolPolicy } from "../contract/Policy.ts"
import type { Turn } from "../contract/Turn.ts"
import type { ApprovalReason } from "../gate/ApprovalGate.ts"
import type { Inventoried } from "./CallState.ts"

/** The two-dimensional table of the seed (6.2): does the policy of the turn ask about a tool of this policy. */
const asksOrdinarily = (turn: Turn, toolPolicy: ToolPolicy, trusted: boolean): boolean => {
  switch (turn.approvalPolicy) {
    case "always":
      return true
    case "on-request":
    case "suggest":
      return toolPolicy !== "auto"
    case "untrusted":
      return !(toolPolicy === "auto" && trusted)
    case "auto":
    case "never":
      return false
  }
}

/** Why somebody must agree, in the order shown to them. Only the last is waived by a hook's or a rule's allow. */
export const reasonsToAsk = (
  state: Inventoried,
  trustedTools: ReadonlySet<string>
): ReadonlyArray<ApprovalReason> => {
  const { tool } = state.registered
  const reasons: Array<ApprovalReason> = []
  if (state.grants.length > 0) reasons.push("outside_write")
  if (state.unconfined) reasons.push("unconfined_command")
  if (state.explicit) reasons.push("explicit")
  if (state.hookAsks.length > 0) reasons.push("hook")
  if (state.ruleAsks !== undefined) reasons.push("rule")
  const waived = tool.interactive || ((state.hookAllowed || state.ruleAllows) && tool.policy !== "untrusted")
  if (!waived && asksOrdinarily(state.now.turn, tool.policy, trustedTools.has(tool.name))) reasons.push("ordinary")
  return reasons
}

/** All that an answer is about: the call, what it may touch, under which mode, and why it was asked. */
export const digestOf = (sha256: Sha256, state: Inventoried, reasons: ReadonlyArray<ApprovalReason>): string =>
  sha256(canonical([
    state.effective.digest,
    state.now.turn.sandboxMode,
    reasons,
    state.grants.map(({ device, inode, parentDevice, parentInode, path }) => [
      path,
      device,
      inode,
      parentDevice,
      parentInode
    ])
  ]))
