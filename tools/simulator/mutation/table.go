package mutation

// core is where most breaks are.
const core = "libs/vsr"

// Table is all deliberate breaks. Most are found by the simulator. A few are of parts it does not have, or show in it
// only after a chain of rare events, since several rules guard against them at once; tests find those. Not in it are
// comparing neither identity nor parent of a repaired entry, ignoring the incarnation of an answer, leaving a view whose
// primary is heard, voting in the first moments of a life, and leaving the old acks of a member that asks for the view:
// the scenarios of libs/vsr hold them.
var Table = []Mutation{
	{"an ack too few commits", core, []Change{
		{"if bits.OnesCount32(r.tail.at(next).acks) < r.quorums.Replication {", "if bits.OnesCount32(r.tail.at(next).acks) < r.quorums.Replication-1 {"},
	}, "safety", 50, ""},
	{"a vote too few starts a view", core, []Change{
		{"len(m.voters) >= rules.Quorums.ViewChange:", "len(m.voters) >= rules.Quorums.ViewChange-1:"},
	}, "safety", 300, ""},
	{"a nack too few cuts an op", core, []Change{
		{"case nacks >= m.rules.Quorums.Nack:", "case nacks >= m.rules.Quorums.Nack-1:"},
	}, "safety", 500, ""},
	{"acks leave before the entry is durable", core, []Change{
		{"if r.held <= r.acked || !r.mayAck() {", "if r.tail.head <= r.acked || !r.mayAck() {"},
		{"\tr.acked = r.held\n\tr.sendOk(r.held, out)", "\tr.acked = r.tail.head\n\tr.sendOk(r.tail.head, out)"},
	}, "safety", 50, ""},
	{"what others committed is applied before it is held", core, []Change{
		{"to := min(r.known, r.held); to > r.committed", "to := min(r.known, r.tail.head); to > r.committed"},
	}, "safety", 100, ""},
	{"an own entry counts as the view's without its identity", core, []Change{
		{"return own != nil && h != nil && own.Checksum == h.Checksum", "return own != nil && h != nil"},
	}, "liveness", 300, ""},
	{"flagged votes count", core, []Change{
		{"if !reports[i].Suspect {", "if i >= 0 {"},
	}, "power", 500, ""},
	{"a suspect member votes unflagged", core, []Change{
		{"Suspect: r.state != Whole}", "Suspect: r.state == Empty}"},
	}, "power", 100, ""},
	{"a suspect member acknowledges", core, []Change{
		{"r.state == Whole && r.saved.Whole && !r.transfer", "!r.transfer"},
	}, "power", 100, ""},
	{"the suspect epoch is forgotten by the next start", "tools/simulator", []Change{
		{"\tif d.session.open && d.session.boot != d.boot {\n\t\td.session.epoch++\n", "\tif d.session.open && d.session.boot != d.boot {\n\t\td.session.epoch++\n\t\tdefer func() { d.session.epoch-- }()\n"},
	}, "power", 500, ""},
	{"the merge goes by the first vote that arrived", core, []Change{
		{"\t\tm.logView = max(m.logView, r.LogView)\n", "\t\tm.logView = m.voters[0].LogView + 0*r.LogView\n"},
	}, "safety", 3000, ""},
	{"frames leave before the vote is saved", core, []Change{
		{"return r.saved.View == r.view && r.saved.LogView == r.logView }", "return true }"},
	}, "safety", 50, ""},
	{"headers of a view are not stored before its number is voted with", core, []Change{
		{"missing := p.head > r.tail.head && p.newer && !p.stored", "missing := false"},
	}, "liveness", 3000, ""},
	{"the cut of an adoption reaches below the commit point", core, []Change{
		{"\tif op <= r.committed {\n\t\treturn r.matched(r.committed)", "\tif op <= r.committed {\n\t\treturn r.matched(max(r.committed, 1) - 1)"},
	}, "liveness", 300, ""},
	{"entries that can not be read any more are nacked", core, []Change{
		{"\t\t\tif op > r.doubt {\n", "\t\t\tif op > 0 {\n"},
	}, "safety", 300, ""},
	{"adopted headers are not named", core, []Change{
		{"\tif len(r.names) > 0 {\n\t\td.Head = max(d.Head, r.names[0].Op)\n\t}\n", ""},
	}, "liveness", 2000, ""},
	{"a number that was sent is used again", core, []Change{
		{"\t\tr.truncate(in.Op, out)\n\t\tr.handOver(out)\n", "\t\tr.truncate(in.Op, out)\n"},
	}, "liveness", 300, ""},
	{"a restarted primary goes on in its view", core, []Change{
		{"\tr.status = statusRecovering\n\tr.doubt = b.Lost\n", "\tif r.leader() != r.group.Self {\n\t\tr.status = statusRecovering\n\t}\n\tr.doubt = b.Lost\n"},
	}, "safety", 100, ""},
	{Name: "acks of an old view count", Dir: core, Changes: []Change{
		{"	case h.View < r.view:\n		r.correct(in.From, out)\n		return\n	case h.View > r.view:\n		r.replaced", "	case h.View > r.view:\n		r.replaced"},
	}, Tests: "libs/vsr TestScenarios"},
	{"a log view is voted with before its log is held", core, []Change{
		{"if !r.store(out) || r.storing || r.held < r.tail.head {", "if !r.store(out) || r.storing {"},
	}, "safety", 3000, ""},
	{"poll floor skipped", "libs/wire", []Change{
		{"	return f.View < o.View || f.View == o.View && f.Next < o.Next\n", "	return f.View < 0*o.View && f.Next < o.Next\n"},
	}, "safety", 3000, ""},
	{Name: "parent check dropped", Dir: core, Changes: []Change{
		{"	case !r.tail.precedes(h):", "	case false:"},
		{"if !r.tail.precedes(&e.header) {", "if false {"},
	}, Tests: "libs/vsr TestForgeries|TestScenarios"},
	{Name: "incarnation tag of a group ignored", Dir: core, Changes: []Change{
		{"!ok || group != r.group.ID {", "!ok || (group^r.group.ID)<<12 != 0 {"},
	}, Tests: "libs/vsr TestForgeries"},
	{Name: "feed served to the head", Dir: "services/metadata-replica", Changes: []Change{
		{"	r.pipelined[h.Client]++\n	return loop.Staged{}, nil\n", "	r.pipelined[h.Client]++\n	if r.feed != nil {\n		r.feed.Add(h, body)\n		r.feedOut()\n	}\n	return loop.Staged{}, nil\n"},
		{"	if r.feed != nil {\n		r.feed.Add(h, body)\n	}\n	if len(r.staged)", "	if len(r.staged)"},
	}, Tests: "services/metadata-replica TestFeed"},
	{Name: "placement computed in apply", Dir: "libs/metadata", Changes: []Change{
		{"members: string(a.Members),", "members: string(append(a.Members[len(a.Members)/2:], a.Members[:len(a.Members)/2]...)),"},
	}, Tests: "libs/routing TestMembersOfPartitions"},
	{Name: "any answer of a node counts for the lease", Dir: "libs/loop", Changes: []Change{
		{"a != nil && a.view == view && a.at", "a != nil && a.at"},
	}, Tests: "libs/loop TestLeaseCountsFollowersOnly"},
	{Name: "a vote leaves a promise behind", Dir: "libs/loop", Changes: []Change{
		{"if !p.leased || !v.Deserts {", "if !p.leased || v.Save {"},
	}, Tests: "libs/loop TestVoteWaitsForThePromise"},
	{"a new primary answers before it has what it inherited", core, []Change{
		{"return r.Primary() && r.applied >= r.start }", "return r.Primary() }"},
	}, "safety", 1000, ""},
	{"two requests of a client are in flight", core, []Change{
		{"if r.tail.at(op).header.Client == q.Client {", "if r.tail.at(op).header.Client == q.Client && op == 0 {"},
	}, "safety", 300, ""},
	{"a successor begins without the seal", core, []Change{
		{"return last.Op == seal.Op && last.Checksum == seal.Identity", "return last.Op > 0 || last.Checksum == seal.Identity"},
	}, "safety", 200, ""},
	{"a seal counts before a quorum of the old group holds it", core, []Change{
		{"if !r.closed() || r.committed < r.tail.head {", "if !r.closed() {"},
	}, "safety", 200, ""},
	{"requests are admitted behind the seal", core, []Change{
		{"	case r.closed():\n		return wire.CodeTransientNotAccepted, WhySealed\n", ""},
	}, "safety", 100, ""},
	{"what is left of a sealed group goes early", core, []Change{
		{"return bits.OnesCount32(begun) >= max(q.Replication, q.ViewChange)", "return bits.OnesCount32(begun) >= min(1, q.ViewChange)"},
	}, "safety", 500, ""},
	{"prepares go back in time with the clock", core, []Change{
		{"r.timeFloor = max(in.Now, r.timeFloor+1)", "r.timeFloor = in.Now"},
	}, "safety", 100, ""},
}
