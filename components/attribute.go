package components

// AttributeNoDependencies is the key of attributes that name, as value, a
// function whose instructions came without any dependencies although they
// have access patterns: the dependencies have to be rebuilt from those.
const AttributeNoDependencies = "dependencies.absent"
