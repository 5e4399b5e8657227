"""The data sets as 2.x has them: ``paddle.io.Dataset``s with samples by number, for ``paddle.vision`` and
``paddle.text``.

    samples         what all share: a list of samples whose fields become arrays
    pictures        what the image sets share: the kind of image, the transform
    digits          MNIST, FashionMNIST
    coloured        Cifar10, Cifar100, Flowers
    folders         DatasetFolder, ImageFolder, VOC2012
    texts           UCIHousing, Imdb, Imikolov
    ratings         Movielens
    roles           Conll05st
    translations    WMT14, WMT16

Files, formats and stand-ins are those of ``fleet_mpi.data.sets``; what a sample looks like is decided here. Each can be
pickled, as a ``DataLoader`` with worker processes needs it. ``download`` fetches nothing: with ``download=False`` a set
that was given no file is refused, as in the original, and no stand-in takes its place.
"""
