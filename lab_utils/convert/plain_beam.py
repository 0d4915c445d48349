"""Apache Beam, the same in a notebook as in a script: `from lab_utils.convert.plain_beam import beam`."""

from lab_utils.convert.logs import quiet

with quiet():
    import apache_beam as beam

# In a notebook's kernel Beam 2.77 puts the cell's number before the name of every step. To do so it imports
# pandas, which need not be there, and has the page load jQuery from the network.
beam.pipeline.alter_label_if_ipython = lambda transform, pvalueish: None
