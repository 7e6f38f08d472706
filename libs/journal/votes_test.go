package journal

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

func openVotes(t testing.TB, fs vfs.FS) *Votes {
	t.Helper()
	if err := fs.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	v, report, err := OpenVotes(fs, "data", testIdentity.Node)
	if err != nil || report.Lost || len(report.Corrupt) > 0 {
		t.Fatalf("%v %+v", err, report)
	}
	return v
}

// turn is the votes of many groups that leave a view together.
func turn(groups int, view uint32, epoch uint64) (batch []Vote) {
	for g := range uint64(groups) {
		batch = append(batch, Vote{Group: g + 1, View: view, LogView: view - 1, Epoch: epoch})
	}
	return batch
}

// TestVotesTurnCrash cuts the power at every call while votes of many groups are saved in one batch:
// every group has the vote saved last or the one that was being saved, with its epoch, and no other.
func TestVotesTurnCrash(t *testing.T) {
	const groups = 3*votesPerBlock - 7
	for _, power := range []bool{false, true} {
		work := func(disk *vfs.Mem) (saved uint32) {
			fs := disk.Mount()
			if fs.MkdirAll("data") != nil || fs.SyncDir(".") != nil {
				return 0
			}
			v, _, err := OpenVotes(fs, "data", testIdentity.Node)
			if err != nil {
				return 0
			}
			for view := range uint32(25) {
				if v.Save(turn(groups, view+1, uint64(view/7))) != nil {
					break
				}
				saved = view + 1
			}
			return saved
		}
		whole := vfs.NewMem(9)
		work(whole)
		for k := 1; k <= whole.Calls(); k++ {
			disk := vfs.NewMem(uint64(k))
			disk.CrashAt(k, power)
			saved := work(disk)
			disk.Restart()
			v := openVotes(t, disk.Mount())
			list := v.All()
			if saved > 0 && len(list) != groups {
				t.Fatalf("power %v, call %d: %d votes", power, k, len(list))
			}
			for _, vote := range list {
				view := vote.View
				if view < saved || view > saved+1 || vote.LogView != view-1 || vote.Epoch != uint64((view-1)/7) {
					t.Fatalf("power %v, call %d: %+v, saved %d", power, k, vote, saved)
				}
			}
		}
	}
}

// TestVotesTorn: a block that the last save left torn in both copies keeps the votes before.
func TestVotesTorn(t *testing.T) {
	disk := vfs.NewMem(1)
	v := openVotes(t, disk.Mount())
	for view := range uint32(2) {
		if err := v.Save(turn(200, view+1, 5)); err != nil {
			t.Fatal(err)
		}
	}
	last := v.next - 1 // of two blocks, the one with the groups above votesPerBlock
	disk.Kill()
	area := int(v.generation%2) * 2 * v.blocks
	disk.Corrupt("data/votes", func(b []byte) []byte {
		for _, first := range []int{area, area + v.blocks} {
			clear(b[(first+last)*slotSize+512 : (first+last+1)*slotSize])
		}
		return b
	})
	for _, vote := range openVotes(t, disk.Mount()).All() {
		want := uint32(2)
		if vote.Group > votesPerBlock {
			want = 1
		}
		if vote.View != want || vote.Epoch != 5 {
			t.Fatalf("%+v, want view %d", vote, want)
		}
	}
}

// TestVoteWriter: batches that wait for a save share the next one; each completes once, in order,
// and the last vote of a group is the one that counts.
func TestVoteWriter(t *testing.T) {
	disk := vfs.NewMem(1)
	v := openVotes(t, disk.Mount())
	var mu sync.Mutex
	var done []uint64
	first, hold := make(chan struct{}), make(chan struct{})
	w := NewVoteWriter(v, func(d VoteDone) {
		if d.Err != nil {
			t.Error(d.Err)
		}
		if d.Seq == 0 {
			close(first)
			<-hold
		}
		mu.Lock()
		done = append(done, d.Seq)
		mu.Unlock()
	})
	w.Submit(0, turn(1, 1, 0))
	<-first
	calls := disk.Calls()
	for seq := range uint64(50) {
		w.Submit(seq+1, turn(100, uint32(seq)+2, 0))
	}
	close(hold)
	w.Close()
	if w.Submit(99, turn(1, 99, 0)) {
		t.Error("taken after Close")
	}
	want := make([]uint64, 51)
	for i := range want {
		want[i] = uint64(i)
	}
	if !slices.Equal(done, want) {
		t.Fatalf("done %v", done)
	}
	if n := disk.Calls() - calls; n > 3 {
		t.Errorf("%d calls for what one save could hold", n)
	}
	disk.PowerCut()
	for _, vote := range openVotes(t, disk.Mount()).All() {
		if vote.View != 51 {
			t.Fatalf("%+v", vote)
		}
	}
}

// BenchmarkVotes measures one save, beside a table of 10 000 groups.
func BenchmarkVotes(b *testing.B) {
	for _, n := range []int{1, 256, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := openVotes(b, vfs.NewOS(b.TempDir()))
			if err := v.Save(turn(10_000, 1, 0)); err != nil {
				b.Fatal(err)
			}
			batch := turn(n, 2, 0)
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Save(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
