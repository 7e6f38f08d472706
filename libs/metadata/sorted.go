package metadata

import "iter"

// treeMap is an immutable ordered map: Set and Delete return a new map that shares all but
// O(log n) nodes with the old one, so a View is cheap to derive and safe to read from any goroutine.
// It is a weight-balanced tree; the weights also answer positions, which gives the lowest free id
// in O(log n). Iteration is in ascending key order, the only order there is.
type treeMap[K, V any] struct {
	root    *node[K, V]
	compare func(a, b K) int
}

type node[K, V any] struct {
	left, right *node[K, V]
	size        int
	key         K
	value       V
}

// newMap returns an empty map ordered by compare.
func newMap[K, V any](compare func(a, b K) int) treeMap[K, V] {
	return treeMap[K, V]{compare: compare}
}

// sortedMap builds a map of n entries from at, whose keys must ascend strictly.
func sortedMap[K, V any](compare func(a, b K) int, n int, at func(i int) (K, V)) treeMap[K, V] {
	var build func(from, to int) *node[K, V]
	build = func(from, to int) *node[K, V] {
		if from == to {
			return nil
		}
		mid := (from + to) / 2
		k, v := at(mid)
		return join(build(from, mid), k, v, build(mid+1, to))
	}
	return treeMap[K, V]{root: build(0, n), compare: compare}
}

// Len is the number of entries.
func (m treeMap[K, V]) Len() int { return m.root.weight() }

// Get returns the value under k.
func (m treeMap[K, V]) Get(k K) (v V, ok bool) {
	for n := m.root; n != nil; {
		switch c := m.compare(k, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return v, false
}

// At returns the i-th entry in key order; i must be within 0..Len()-1.
func (m treeMap[K, V]) At(i int) (K, V) {
	n := m.root
	for {
		left := n.left.weight()
		switch {
		case i < left:
			n = n.left
		case i > left:
			i -= left + 1
			n = n.right
		default:
			return n.key, n.value
		}
	}
}

// All yields every entry in key order.
func (m treeMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.walk(yield) }
}

// From yields the entries with keys at or above k, in key order.
func (m treeMap[K, V]) From(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.walkFrom(k, m.compare, yield) }
}

// set returns the map with v under k.
func (m treeMap[K, V]) set(k K, v V) treeMap[K, V] {
	m.root = insert(m.root, k, v, m.compare)
	return m
}

// delete returns the map without k.
func (m treeMap[K, V]) delete(k K) treeMap[K, V] {
	if _, ok := m.Get(k); ok {
		m.root = remove(m.root, k, m.compare)
	}
	return m
}

func (n *node[K, V]) weight() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (n *node[K, V]) walkFrom(k K, compare func(a, b K) int, yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	if compare(n.key, k) < 0 {
		return n.right.walkFrom(k, compare, yield)
	}
	return n.left.walkFrom(k, compare, yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func join[K, V any](l *node[K, V], k K, v V, r *node[K, V]) *node[K, V] {
	return &node[K, V]{left: l, right: r, size: l.weight() + r.weight() + 1, key: k, value: v}
}

// Balance of a weight-balanced tree: no side weighs more than ratio times the other, and a double
// rotation is needed when the inner grandchild outweighs the outer one. (3, 2) is the pair proven
// to restore the balance after every single insertion or deletion.
const balanceRatio, rotateRatio = 3, 2

// balanced joins l and r, one of which may have grown or shrunk by one, and rotates if needed.
func balanced[K, V any](l *node[K, V], k K, v V, r *node[K, V]) *node[K, V] {
	lw, rw := l.weight()+1, r.weight()+1
	switch {
	case rw > balanceRatio*lw:
		if r.left.weight()+1 < rotateRatio*(r.right.weight()+1) {
			return join(join(l, k, v, r.left), r.key, r.value, r.right)
		}
		m := r.left
		return join(join(l, k, v, m.left), m.key, m.value, join(m.right, r.key, r.value, r.right))
	case lw > balanceRatio*rw:
		if l.right.weight()+1 < rotateRatio*(l.left.weight()+1) {
			return join(l.left, l.key, l.value, join(l.right, k, v, r))
		}
		m := l.right
		return join(join(l.left, l.key, l.value, m.left), m.key, m.value, join(m.right, k, v, r))
	}
	return join(l, k, v, r)
}

func insert[K, V any](n *node[K, V], k K, v V, compare func(a, b K) int) *node[K, V] {
	if n == nil {
		return &node[K, V]{size: 1, key: k, value: v}
	}
	switch c := compare(k, n.key); {
	case c < 0:
		return balanced(insert(n.left, k, v, compare), n.key, n.value, n.right)
	case c > 0:
		return balanced(n.left, n.key, n.value, insert(n.right, k, v, compare))
	}
	return join(n.left, k, v, n.right)
}

func remove[K, V any](n *node[K, V], k K, compare func(a, b K) int) *node[K, V] {
	switch c := compare(k, n.key); {
	case c < 0:
		return balanced(remove(n.left, k, compare), n.key, n.value, n.right)
	case c > 0:
		return balanced(n.left, n.key, n.value, remove(n.right, k, compare))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	first := n.right
	for first.left != nil {
		first = first.left
	}
	return balanced(n.left, first.key, first.value, removeFirst(n.right))
}

func removeFirst[K, V any](n *node[K, V]) *node[K, V] {
	if n.left == nil {
		return n.right
	}
	return balanced(removeFirst(n.left), n.key, n.value, n.right)
}

// lowestFree returns the smallest number that is not a key: ids are given out this way, so a node
// restored from a snapshot assigns the same one as a node that replayed the log.
func lowestFree[V any](m treeMap[uint32, V]) uint32 {
	low, n := uint32(0), m.root
	for n != nil {
		// Keys are distinct and none below low is free, so the left subtree is gapless exactly
		// when this key equals low plus the subtree's weight.
		if dense := low + uint32(n.left.weight()); n.key == dense {
			low, n = dense+1, n.right
		} else {
			n = n.left
		}
	}
	return low
}

// cursor walks a map in order and can skip whole shared subtrees; see difference.
type cursor[K, V any] struct {
	// stack holds trees still to be visited, the next one last; whole says whether the entry
	// stands for the tree or for its root alone.
	stack []pending[K, V]
}

type pending[K, V any] struct {
	n     *node[K, V]
	whole bool
}

func (c *cursor[K, V]) push(n *node[K, V], whole bool) {
	if n != nil {
		c.stack = append(c.stack, pending[K, V]{n, whole})
	}
}

func (c *cursor[K, V]) top() *pending[K, V] {
	if len(c.stack) == 0 {
		return nil
	}
	return &c.stack[len(c.stack)-1]
}

func (c *cursor[K, V]) pop() { c.stack = c.stack[:len(c.stack)-1] }

// open replaces the tree on top by its left side, its root and its right side.
func (c *cursor[K, V]) open() {
	n := c.top().n
	c.pop()
	c.push(n.right, true)
	c.push(n, false)
	c.push(n.left, true)
}

// difference calls visit for every key whose entry is in one of the maps only or stands in another
// node, in key order, until visit returns false. Subtrees that both share are skipped, so after
// one update the cost is O(log n). was and is report which side has the key.
func difference[K, V any](older, newer treeMap[K, V], visit func(k K, old V, was bool, new V, is bool) bool) {
	compare := newer.compare
	var a, b cursor[K, V]
	a.push(older.root, true)
	b.push(newer.root, true)
	var none V
	for {
		x, y := a.top(), b.top()
		switch {
		case x == nil && y == nil:
			return
		case x != nil && y != nil && x.whole && y.whole && x.n == y.n:
			a.pop()
			b.pop()
		case x != nil && x.whole && (y == nil || !y.whole || x.n.size >= y.n.size):
			a.open()
		case y != nil && y.whole:
			b.open()
		case y == nil || x != nil && compare(x.n.key, y.n.key) < 0:
			a.pop()
			if !visit(x.n.key, x.n.value, true, none, false) {
				return
			}
		case x == nil || compare(x.n.key, y.n.key) > 0:
			b.pop()
			if !visit(y.n.key, none, false, y.n.value, true) {
				return
			}
		default:
			a.pop()
			b.pop()
			if x.n != y.n && !visit(x.n.key, x.n.value, true, y.n.value, true) {
				return
			}
		}
	}
}
