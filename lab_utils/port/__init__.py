"""The mechanical part of a port to TPUEstimator, as a diff of a program's file.

    python -m lab_utils.port train.py

`ported(source)` gives the new source and what it leaves to a person: names.py puts today's names for those of
tf.contrib and TensorFlow 1, forms.py the TPU's forms for the plain Estimator's, told.py lists the rest.
"""
