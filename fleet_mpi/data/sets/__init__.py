"""The data sets, one module each: the original's files where they are, a synthetic stand-in where not.

Numbers and ratings:

    uci_housing         Boston housing prices
    movielens           film ratings
    mq2007              documents ranked for queries
    ctr                 clicks on advertisements, in Criteo's text format
    random_clicks       random ids and labels

Images:

    mnist               handwritten digits
    fashion_mnist       clothing, in the format of MNIST
    cifar               CIFAR-10 and CIFAR-100
    flowers             102 kinds of flowers
    voc2012             photographs with a class for every pixel

Texts:

    imdb, sentiment     film reviews, good or bad
    imikolov            Penn Treebank, for language models
    conll05             semantic roles
    wmt14, wmt16        sentence pairs for translation

What they share:

    words               word dictionaries, made-up words
    translation         samples of sentence pairs, made-up pairs
    made_up_reviews     reviews for the stand-ins of ``imdb`` and ``sentiment``
    made_up_roles       sentences for the stand-in of ``conll05``
    coloured_patterns   images for the stand-ins of the image sets
    matlab_files        reads arrays of MATLAB version 5 files, for ``flowers``

Every stand-in is the same in every process, can be learnt from, and is announced by one log line.
"""
