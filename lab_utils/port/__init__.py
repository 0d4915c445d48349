"""The mechanical part of a port to TPUEstimator, as a diff of a program's file.

    python -m lab_utils.port train.py

forms.py puts the TPU's forms for the plain Estimator's, names.py today's names for those of
tf.contrib and TensorFlow 1; listed.py lists the rest.
"""
