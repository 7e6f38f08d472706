package metadata

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkTree verifies order, sizes and balance of every node.
func checkTree[V any](t interface{ Fatalf(string, ...any) }, n *node[uint32, V]) (low, high uint32) {
	if n.size != n.left.weight()+n.right.weight()+1 {
		t.Fatalf("node %d has size %d", n.key, n.size)
	}
	l, r := n.left.weight()+1, n.right.weight()+1
	if l > balanceRatio*r || r > balanceRatio*l {
		t.Fatalf("node %d is out of balance: %d against %d", n.key, l, r)
	}
	low, high = n.key, n.key
	if n.left != nil {
		var below uint32
		if low, below = checkTree(t, n.left); below >= n.key {
			t.Fatalf("%d stands left of %d", below, n.key)
		}
	}
	if n.right != nil {
		var above uint32
		if above, high = checkTree(t, n.right); above <= n.key {
			t.Fatalf("%d stands right of %d", above, n.key)
		}
	}
	return low, high
}

func keysOf(m treeMap[uint32, int]) (keys []uint32) {
	for k := range m.All() {
		keys = append(keys, k)
	}
	return keys
}

func TestSortedMapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, model := newMap[uint32, int](cmp.Compare[uint32]), map[uint32]int{}
		type version struct {
			m     treeMap[uint32, int]
			model map[uint32]int
		}
		var versions []version
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			k := rapid.Uint32Range(0, 60).Draw(t, "key")
			if rapid.IntRange(0, 2).Draw(t, "op") == 0 {
				m = m.delete(k)
				delete(model, k)
			} else {
				m = m.set(k, i)
				model[k] = i
			}
			if i%17 == 0 {
				clone := map[uint32]int{}
				for k, v := range model {
					clone[k] = v
				}
				versions = append(versions, version{m, clone})
			}
		}
		for _, v := range append(versions, version{m, model}) {
			checkAgainst(t, v.m, v.model)
		}
		checkDifference(t, versions[0].m, m, versions[0].model, model)
	})
}

func checkAgainst(t *rapid.T, m treeMap[uint32, int], model map[uint32]int) {
	if m.root != nil {
		checkTree(t, m.root)
	}
	want := make([]uint32, 0, len(model))
	for k := range model {
		want = append(want, k)
	}
	slices.Sort(want)
	if got := keysOf(m); !slices.Equal(got, want) || m.Len() != len(want) {
		t.Fatalf("keys %v, want %v", got, want)
	}
	for i, k := range want {
		v, ok := m.Get(k)
		if at, value := m.At(i); !ok || v != model[k] || at != k || value != v {
			t.Fatalf("entry %d: %d under %d, at gives %d under %d", i, v, k, value, at)
		}
	}
	free := uint32(0)
	for _, k := range want {
		if k == free {
			free++
		}
	}
	if got := lowestFree(m); got != free {
		t.Fatalf("lowest free %d, want %d", got, free)
	}
	from := rapid.Uint32Range(0, 61).Draw(t, "from")
	var tail []uint32
	for k := range m.From(from) {
		tail = append(tail, k)
	}
	at, _ := slices.BinarySearch(want, from)
	if !slices.Equal(tail, want[at:]) {
		t.Fatalf("from %d: %v, want %v", from, tail, want[at:])
	}
}

func checkDifference(t *rapid.T, older, newer treeMap[uint32, int], old, new map[uint32]int) {
	seen := map[uint32]bool{}
	last := -1
	difference(older, newer, func(k uint32, a int, was bool, b int, is bool) bool {
		av, aok := old[k]
		bv, bok := new[k]
		if int(k) <= last || was != aok || is != bok || was && a != av || is && b != bv {
			t.Fatalf("difference reports %d wrongly", k)
		}
		last, seen[k] = int(k), true
		return true
	})
	for k := range 61 {
		a, aok := old[uint32(k)]
		b, bok := new[uint32(k)]
		if (aok != bok || a != b) && !seen[uint32(k)] {
			t.Fatalf("difference misses %d", k)
		}
	}
}

func TestSortedMapBulkEqualsSingle(t *testing.T) {
	for n := range 200 {
		m := sortedMap(cmp.Compare[uint32], n, func(i int) (uint32, int) { return uint32(i), i })
		if m.Len() != n || lowestFree(m) != uint32(n) {
			t.Fatalf("%d entries: length %d", n, m.Len())
		}
		if n > 0 {
			checkTree(t, m.root)
		}
	}
}

// After one change the difference is found without walking the map.
func TestDifferenceSkipsSharedTrees(t *testing.T) {
	m := sortedMap(cmp.Compare[uint32], 1<<16, func(i int) (uint32, int) { return uint32(i), i })
	compared := 0
	m.compare = func(a, b uint32) int { compared++; return cmp.Compare(a, b) }
	changed := m.set(77, -1)
	compared = 0
	visits, found := 0, false
	difference(m, changed, func(k uint32, old int, _ bool, new int, _ bool) bool {
		visits++
		found = found || k == 77 && old == 77 && new == -1
		return true
	})
	if !found || visits > 40 || compared > 200 {
		t.Fatalf("%d visits, %d comparisons", visits, compared)
	}
}
