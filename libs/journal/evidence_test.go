package journal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

var testIdentity = Identity{Cluster: [16]byte{1}, Node: [16]byte{7}, ID: 3}

// begin starts a life as a node does: evidence, identity, session record.
func begin(t *testing.T, disk *vfs.Mem) (*Evidence, *Life) {
	t.Helper()
	fs := disk.Mount()
	if _, err := LockDir(fs, "data"); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	e, err := LoadEvidence(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	id := e.Identity
	if !e.HasIdentity {
		id = testIdentity
		if err := WriteIdentity(fs, "data", id); err != nil {
			t.Fatal(err)
		}
	}
	if id != testIdentity {
		t.Fatalf("identity is %+v", id)
	}
	life, err := e.Begin(fs, "data", id)
	if err != nil {
		t.Fatal(err)
	}
	return e, life
}

func TestEvidence(t *testing.T) {
	kill, power := (*vfs.Mem).Kill, (*vfs.Mem).PowerCut
	stop := func(m *vfs.Mem) {}
	copied := func(m *vfs.Mem) { // another inode, same boot
		b := m.Read("data/session")
		m.Kill()
		m.Drop("data/session")
		f, _ := m.Create("data/session")
		f.WriteAt(b, 0)
	}
	for _, c := range []struct {
		name  string
		lives []func(*vfs.Mem)
		want  []bool // suspect, per life
		epoch []uint64
	}{
		{"first start", nil, []bool{false}, []uint64{0}},
		{"kills", []func(*vfs.Mem){kill, kill}, []bool{false, false, false}, []uint64{0, 0, 0}},
		{"power cut", []func(*vfs.Mem){power}, []bool{false, true}, []uint64{0, 1}},
		{"suspicion outlives a kill", []func(*vfs.Mem){power, kill}, []bool{false, true, false}, []uint64{0, 1, 1}},
		{"two power cuts", []func(*vfs.Mem){power, power}, []bool{false, true, true}, []uint64{0, 1, 2}},
		{"graceful stop, then power cut", []func(*vfs.Mem){stop}, []bool{false, false}, []uint64{0, 0}},
		{"copied directory", []func(*vfs.Mem){copied}, []bool{false, true}, []uint64{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := vfs.NewMem(1)
			for i := range c.want {
				e, life := begin(t, disk)
				if e.Suspect != c.want[i] || e.Epoch != c.epoch[i] || len(e.Corrupt) > 0 {
					t.Fatalf("life %d: suspect %v epoch %d corrupt %v", i, e.Suspect, e.Epoch, e.Corrupt)
				}
				if i == len(c.lives) {
					break
				}
				if fmt.Sprintf("%p", c.lives[i]) == fmt.Sprintf("%p", stop) {
					if err := life.End([]LSN{77}); err != nil {
						t.Fatal(err)
					}
					disk.PowerCut()
					continue
				}
				c.lives[i](disk)
			}
		})
	}
}

func TestEvidenceJudgesGroups(t *testing.T) {
	e := &Evidence{Epoch: 2, Session: Session{Epoch: 1, HardEpoch: 1}}
	for _, c := range []struct {
		vote                      *Vote
		records, synced, metadata bool
		want                      GroupState
	}{
		{nil, false, false, false, Born},
		{nil, false, true, true, Empty},
		{nil, true, false, false, Suspect},
		{&Vote{Epoch: 2}, true, false, false, Whole},
		{&Vote{Epoch: 1}, true, false, false, Suspect},
		{&Vote{Epoch: 1}, true, true, false, Whole},
		{&Vote{Epoch: 0}, true, true, true, Suspect}, // a sync failed since
	} {
		if got := e.Judge(c.vote, c.records, c.synced, c.metadata); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestSessionSurvivesDamage damages identity and session record everywhere: the node always starts,
// as the same node, and never takes a damaged past for a whole one.
func TestSessionSurvivesDamage(t *testing.T) {
	disk := vfs.NewMem(1)
	begin(t, disk)
	for _, file := range []string{"data/identity", "data/session"} {
		size := len(disk.Read(file))
		for name, change := range corruptions(size, 97) {
			t.Run(file+"/"+name, func(t *testing.T) {
				c := disk.Clone(2)
				c.Corrupt(file, change)
				e, _ := begin(t, c)
				if !e.HasSession && !e.Suspect {
					t.Fatal("lost session record is not suspect")
				}
			})
		}
	}
	t.Run("both copies of the session", func(t *testing.T) {
		c := disk.Clone(2)
		c.Corrupt("data/session", func(b []byte) []byte { clear(b); return b })
		e, _ := begin(t, c)
		if !e.Suspect || len(e.Corrupt) == 0 {
			t.Fatalf("suspect %v, corrupt %v", e.Suspect, e.Corrupt)
		}
	})
	t.Run("identity lost", func(t *testing.T) {
		c := disk.Clone(2)
		c.Drop("data/identity")
		if e, _ := begin(t, c); len(e.Corrupt) == 0 {
			t.Fatal("not reported")
		}
	})
}

func TestVotes(t *testing.T) {
	disk := vfs.NewMem(3)
	if err := disk.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	disk.SyncDir(".")
	want := map[uint64]Vote{}
	open := func() *Votes {
		v, report, err := OpenVotes(disk.Mount(), "data", testIdentity.Node)
		if err != nil || report.Lost || len(report.Corrupt) > 0 {
			t.Fatalf("%v %+v", err, report)
		}
		got := v.All()
		if len(got) != len(want) {
			t.Fatalf("%d votes, want %d", len(got), len(want))
		}
		for _, vote := range got {
			if want[vote.Group] != vote {
				t.Fatalf("got %+v, want %+v", vote, want[vote.Group])
			}
		}
		return v
	}
	v := open()
	for round := range 400 {
		var batch []Vote
		for i := range uint64(1 + round%300) {
			vote := Vote{Group: (i*7 + uint64(round)) % 1000, View: uint32(round), LogView: 1, Epoch: uint64(round % 3), Gone: (i+uint64(round))%11 == 0}
			if slices.ContainsFunc(batch, func(o Vote) bool { return o.Group == vote.Group }) {
				continue
			}
			batch = append(batch, vote)
		}
		if err := v.Save(batch); err != nil {
			t.Fatal(err)
		}
		for _, vote := range batch {
			if want[vote.Group] = vote; vote.Gone {
				delete(want, vote.Group)
			}
		}
		if round%10 == 0 {
			disk.PowerCut()
			v = open()
		}
	}
}

// TestVotesCrash cuts the power at every mutating call: every vote whose save returned is there.
func TestVotesCrash(t *testing.T) {
	work := func(disk *vfs.Mem, done func(Vote)) {
		fs := disk.Mount()
		fs.MkdirAll("data")
		fs.SyncDir(".")
		v, _, err := OpenVotes(fs, "data", testIdentity.Node)
		if err != nil {
			return
		}
		for i := range 200 {
			vote := Vote{Group: uint64(i % 7), View: uint32(i + 1)}
			if v.Save([]Vote{vote}) != nil {
				return
			}
			done(vote)
		}
	}
	whole := vfs.NewMem(5)
	work(whole, func(Vote) {})
	for k := 1; k <= whole.Calls(); k++ {
		disk := vfs.NewMem(uint64(k))
		disk.CrashAt(k, true)
		saved := map[uint64]Vote{}
		work(disk, func(v Vote) { saved[v.Group] = v })
		disk.Restart()
		disk.MkdirAll("data")
		v, report, err := OpenVotes(disk.Mount(), "data", testIdentity.Node)
		if err != nil || report.Lost {
			t.Fatalf("call %d: %v %+v", k, err, report)
		}
		for g, vote := range saved {
			if got, _ := v.Get(g); got.View < vote.View {
				t.Fatalf("call %d: group %d has view %d, saved %d", k, g, got.View, vote.View)
			}
		}
	}
}

// TestVotesDamage: one damaged place loses no vote; the file is kept aside.
func TestVotesDamage(t *testing.T) {
	disk := vfs.NewMem(5)
	disk.MkdirAll("data")
	v, _, err := OpenVotes(disk.Mount(), "data", testIdentity.Node)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := v.Save([]Vote{{Group: uint64(i % 150), View: uint32(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	want := v.All()
	for name, change := range corruptions(len(disk.Read("data/votes")), 16381) {
		c := disk.Clone(1)
		c.Corrupt("data/votes", change)
		v, report, err := OpenVotes(c.Mount(), "data", testIdentity.Node)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := v.All(); !slices.Equal(got, want) && !report.Lost {
			t.Fatalf("%s: %d votes, want %d, and no word of it: %+v", name, len(got), len(want), report)
		}
		again, report, err := OpenVotes(c.Mount(), "data", testIdentity.Node)
		if err != nil || len(report.Corrupt) > 0 || !slices.Equal(again.All(), v.All()) {
			t.Fatalf("%s: not repaired: %v %+v", name, err, report)
		}
	}
}
