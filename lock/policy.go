package lock

// A Policy is what operators have declared about names: trees, freezes and rules. A decision is made for one Policy, and
// stored only if that is still the one in force. So when a change is answered, nothing is granted against it any more.
// The nil Policy and the zero Policy declare nothing.
type Policy struct {
	Trees   Trees
	Freezes map[Scope]Freeze
	Rules   map[Scope]Rule
}

// ChangesCommands reports whether [Command].In may return another command than the one that it got, or an error.
func (p *Policy) ChangesCommands() bool { return p != nil && len(p.Trees)+len(p.Rules) > 0 }

// trees returns the trees.
func (p *Policy) trees() Trees {
	if p == nil {
		return nil
	}
	return p.Trees
}
